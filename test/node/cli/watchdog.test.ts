import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "./run-weir.ts";

const LOADER = new URL("../../../cli/load-config.ts", import.meta.url).href;

/** Loads a module in a new process, with a short deadline, and returns how the process ends. */
async function load(source: string, exitCode?: 1 | 2) {
  await using folder = await temporaryFolder();
  await folder.write("rules.mjs", source);
  const script = `
    const { loadModule } = await import(${JSON.stringify(LOADER)});
    const blocked = ${JSON.stringify({ text: "blocked", descriptor: 1, exitCode })};
    await loadModule(${JSON.stringify(join(folder.path, "rules.mjs"))}, 100, blocked);
    console.log("loaded");`;
  const { promise, resolve } = Promise.withResolvers<object>();
  execFile(process.execPath, ["--input-type=module", "--eval", script], (error, stdout, stderr) => {
    resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr });
  });
  return await promise;
}

test.each([
  ["a loop without an end", "while (true) {}"],
  ["a loop that catches every error", "for (;;) try { throw new Error(); } catch {}"],
  ["a loop after an await", "await null; while (true) {}"],
  ["promises without an end", "const next = () => Promise.resolve().then(next); await next();"],
  ["a wait that blocks", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);"],
])("a file with %s ends the command with 1 and a report", async (_, source) => {
  expect(await load(source)).toEqual({ code: 1, stdout: "blocked\n", stderr: "" });
});

test("a file that loads in time ends the watch", async () => {
  expect(await load("export default 1;")).toEqual({ code: 0, stdout: "loaded\n", stderr: "" });
});

test("a report may have another exit code", async () => {
  expect(await load("while (true) {}", 2)).toEqual({ code: 2, stdout: "blocked\n", stderr: "" });
});

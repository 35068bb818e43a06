import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "./run-weir.ts";

const MODULE = new URL("../../../cli/deployment/environment.ts", import.meta.url).href;

/** Runs its second argument in a shell, as wrangler runs its build, and prints the output. */
const BUILD = `
  const { execSync } = require("node:child_process");
  process.stdout.write(execSync(process.env.BUILD_COMMAND));
`;

/**
 * Runs a program under the name of a file and with arguments. Returns the result of `wranglerOptions`
 * in its build.
 */
async function optionsUnder(file: string, args: readonly string[]): Promise<unknown> {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, "wrangler-dist"));
  await folder.write(file, BUILD);
  const read = `import(process.argv[1]).then((m) => console.log(JSON.stringify(m.wranglerOptions() ?? null)))`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(folder.path, file), ...args],
    { env: { ...process.env, BUILD_COMMAND: `"${process.execPath}" -e '${read}' ${MODULE}` } },
  );
  return JSON.parse(stdout);
}

describe.skipIf(process.platform === "win32")("the wrangler process that runs the check", () => {
  test.each<[string, string[], object | null]>([
    ["wrangler.js", ["deploy", "--env", "staging"], { environment: "staging" }],
    ["wrangler.js", ["deploy", "--env=staging", "--minify"], { environment: "staging" }],
    ["wrangler.js", ["deploy", "-e", "staging"], { environment: "staging" }],
    ["wrangler-dist/cli.js", ["versions", "upload", "-e=a"], { environment: "a" }],
    ["wrangler.js", ["deploy", "-c", "b.toml"], { environment: "", config: "b.toml" }],
    ["wrangler.js", ["dev", "-c", "a.toml", "-c", "b.toml"], { environment: "" }],
    ["wrangler.js", ["deploy", "src/env.ts", "--var", "A:b"], { environment: "" }],
    ["vite.js", ["build"], null],
  ])("is found by its name, with its options: %s %j", async (file, args, expected) => {
    expect(await optionsUnder(file, args)).toEqual(expected);
  });
});

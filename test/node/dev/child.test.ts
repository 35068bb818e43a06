import { once } from "node:events";
import { expect, it } from "vitest";
import { startChild } from "../../../dev/child.ts";
import { refuses } from "./refuses.ts";

it("reports how the process ended", async () => {
  const child = await startChild(process.execPath, ["--eval", "process.exit(3)"]);
  expect(await child.exited).toEqual({ code: 3, signal: null });
  await child.stop();
});

it("ends the process on stop, and waits until it has ended", async () => {
  const child = await startChild(process.execPath, ["--eval", "setInterval(() => {}, 1000)"]);
  await child.stop();
  expect(await child.exited).toEqual({ code: null, signal: "SIGTERM" });
});

it("rejects if there is no such program", async () => {
  await expect(startChild("weir-no-such-program", [])).rejects.toThrow("ENOENT");
});

it.skipIf(process.platform === "win32")(
  "also ends the processes that the process has started",
  async () => {
    const server = `
    const server = require("node:net").createServer().listen(0, "127.0.0.1", () => {
      console.log(server.address().port);
    });`;
    const starter = `
    require("node:child_process").spawn(process.execPath, ["--eval", process.argv[1]], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    setInterval(() => {}, 1000);`;
    const child = await startChild(process.execPath, ["--eval", starter, "--", server], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(child.process.stdout as NodeJS.ReadableStream, "data");
    const address = { host: "127.0.0.1", port: Number(line) };
    expect(await refuses(address)).toBe(false);
    await child.stop();
    expect(await refuses(address)).toBe(true);
  },
);

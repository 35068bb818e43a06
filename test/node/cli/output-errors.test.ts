import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IS_LONG } from "../../suite/runs.ts";
import { generateLog, logText } from "../replay/generated-log.ts";
import { REPOSITORY, temporaryFolder } from "./run-weir.ts";

const COMMANDS = [
  ["replay", "access.log", "--config", "weir.config.json"],
  ["replay", "access.log", "--config", "weir.config.json", "--json"],
  ["replay", "access.log", "--config", "weir.config.json"],
  ["suggest", "access.log"],
  ["check", "--config", "weir.config.json"],
];

/** Half of the commands, or all of them in `npm run test:long`. The others meet the other error. */
const everyOther = (first: 0 | 1) => COMMANDS.filter((_, index) => IS_LONG || index % 2 === first);

let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  folder = await temporaryFolder();
  await folder.write("access.log", logText(generateLog(100)));
  const rules = [{ name: "per-ip", limit: 10, window: "1m" }];
  await folder.write("weir.config.json", JSON.stringify({ store: "memory", rules }));
});

afterAll(() => folder[Symbol.asyncDispose]());

async function runWith(stdout: "pipe" | ReturnType<typeof createWriteStream>, args: string[]) {
  const command = [join(REPOSITORY, "cli/weir.ts"), ...args];
  const options = { cwd: folder.path, stdio: ["ignore", stdout, "pipe"] as const };
  const child = spawn(process.execPath, command, { ...options, stdio: [...options.stdio] });
  // The reader ends before it has read anything.
  child.stdout?.destroy();
  const exit = once(child, "exit");
  const stderr = child.stderr ? await text(child.stderr) : "";
  const [code] = await exit;
  return { code, stderr };
}

describe.concurrent("an output that cannot be written", () => {
  it.each(everyOther(0))(
    "ends `%s %s %s %s %s` silently if its reader has ended",
    async (...args) => {
      const given = args.filter((each) => each !== undefined);
      expect(await runWith("pipe", given)).toEqual({ code: 0, stderr: "" });
    },
  );

  it.runIf(process.platform === "linux").each(everyOther(1))(
    "ends `%s %s %s %s %s` with 2 and one line if the disk is full",
    async (...args) => {
      const full = createWriteStream("/dev/full");
      await once(full, "open");
      const { code, stderr } = await runWith(
        full,
        args.filter((each) => each !== undefined),
      );
      full.destroy();
      expect(stderr).toMatch(/^The output could not be written\. ENOSPC: .*\n$/);
      expect(code).toBe(2);
    },
  );
});

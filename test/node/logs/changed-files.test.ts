import { mkdir, rm, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { CommandFailure } from "../../../cli/command-failure.ts";
import { openLogs } from "../../../cli/logs/open-logs.ts";
import { accessLine, logFolder, readLogs } from "./log-folder.ts";

const logOf = logFolder();
const LINE = accessLine("192.0.2.1", "10:00:00");

/** Changes a file after it was opened, and reads it. */
async function readAfter(name: string, change: (file: string) => Promise<unknown>) {
  const file = await logOf(name, LINE);
  const logs = await openLogs({ files: [file] });
  await change(file);
  for await (const _ of logs.batches());
  return logs.progress.notes.map((note) => note.replace(file, "FILE"));
}

describe("a file that changes after its first lines were read", () => {
  it("is refused if it was removed, or replaced by a directory", async () => {
    await expect(readAfter("removed", (file) => rm(file))).rejects.toThrow(CommandFailure);
    const replace = (file: string) => rm(file).then(() => mkdir(file));
    await expect(readAfter("replaced", replace)).rejects.toThrow(/replaced cannot be read: /);
  });

  it("gets a note if it became empty", async () => {
    expect(await readAfter("emptied", (file) => writeFile(file, ""))).toEqual([
      "FILE became empty before it was read.",
    ]);
  });
});

it("refuses --map for other formats", async () => {
  const file = await logOf("mapped", LINE);
  const reading = readLogs([file], { map: new Map([["ip", "client"]]) });
  await expect(reading).rejects.toThrow("--map is for JSON lines");
});

describe("a wrong --format", () => {
  it.each([
    ["json", LINE],
    ["combined", '{"time":1,"method":"GET","url":"/"}'],
  ] as const)("is refused: %s for %s", async (format, line) => {
    const file = await logOf("wrong", line);
    await expect(readLogs([file], { format })).rejects.toThrow(
      `none of the first lines has the format ${format}.`,
    );
  });
});

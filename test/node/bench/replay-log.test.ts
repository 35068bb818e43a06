import { readFile } from "node:fs/promises";
import { fileURLToPath, URL } from "node:url";
import { expect, it } from "vitest";
import { generateLog } from "../../../bench/replay/generate-log.ts";
import { runChild } from "../../../bench/replay/timed-child.ts";
import { openLogs } from "../../../cli/logs/open-logs.ts";
import { temporaryFolder } from "../cli/run-weir.ts";

const SPLIT = fileURLToPath(new URL("../../../bench/replay/split-lines.ts", import.meta.url));

it("generates a log of which a replay reads every line, although they are out of order", async () => {
  await using folder = await temporaryFolder();
  const file = `${folder.path}/access.log`;
  await generateLog(file, 20_000, 1);
  const logs = await openLogs({ files: [file] });
  let [requests, clients] = [0, new Set<string | undefined>()];
  for await (const batch of logs.batches()) {
    requests += batch.length;
    for (const { ip } of batch) clients.add(ip);
  }
  expect(requests).toBe(20_000);
  expect(logs.progress).toMatchObject({ broken: 0 });
  expect(clients.size).toBeGreaterThan(1000);
});

it("generates the same log for the same seed", async () => {
  await using folder = await temporaryFolder();
  const logOf = async (name: string, seed: number) => {
    await generateLog(`${folder.path}/${name}`, 1000, seed);
    return readFile(`${folder.path}/${name}`, "utf8");
  };
  const log = await logOf("a", 1);
  expect(await logOf("b", 1)).toBe(log);
  expect(await logOf("c", 2)).not.toBe(log);
});

it("measures a program in a process of its own, and fails if the program fails", async () => {
  await using folder = await temporaryFolder();
  await folder.write("a.log", "a\nb\n\nc");
  const run = await runChild(SPLIT, [`${folder.path}/a.log`]);
  expect(run.stdout).toBe("4\n");
  expect(run.seconds).toBeGreaterThan(0);
  expect(run.cpuSeconds).toBeGreaterThan(0);
  expect(run.peakBytes).toBeGreaterThan(20e6);
  await expect(runChild(SPLIT, [`${folder.path}/missing.log`])).rejects.toThrow("ENOENT");
});

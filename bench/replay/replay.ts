/**
 * `npm run bench:replay`: generates a log, and compares the time of `weir replay` with the time that Node needs merely
 * to split the log into lines. Exits with 1 if a target is missed.
 */
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, URL } from "node:url";
import { parseArgs } from "node:util";
import type { ConfigInput } from "../../src/config/index.ts";
import { generateLog } from "./generate-log.ts";
import { type ChildRun, runChild } from "./timed-child.ts";

const MAX_RATIO = 80;
const MAX_MB = 500;

/** A rule for all requests and a rule for a few of them, as most sites have. */
const CONFIG: ConfigInput = {
  store: "memory",
  rules: [
    { name: "address", limit: 100, window: "1m" },
    { name: "login", match: { methods: ["POST"], paths: ["/login"] }, limit: 5, window: "1m" },
  ],
};

const { values } = parseArgs({
  options: {
    lines: { type: "string", default: "10000000" },
    seed: { type: "string", default: "1" },
    config: { type: "string" },
  },
});
const [lines, seed] = [Number(values.lines), Number(values.seed)];
if (!Number.isSafeInteger(lines) || lines < 1 || !Number.isSafeInteger(seed)) {
  console.error("--lines is a whole number from 1, and --seed is a whole number.");
  process.exit(1);
}

const folder = await mkdtemp(join(tmpdir(), "weir-bench-"));
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void removeFolder().then(() => process.exit(130)));
}
try {
  process.exitCode = (await measure()) ? 0 : 1;
} finally {
  await removeFolder();
}

/** @returns whether the targets are met */
async function measure(): Promise<boolean> {
  const log = join(folder, "access.log");
  const config = values.config ?? (await writeConfig());
  await generateLog(log, lines, seed);
  const { size } = await stat(log);
  console.log(`${lines.toLocaleString("en")} lines, ${(size / 1e6).toFixed(0)} MB`);
  // The speed of the machine may change, so the replay runs between two runs of the split.
  const before = await split(log);
  const replay = await runChild(fileOf("../../cli/weir.ts"), [
    ...["replay", log, "--config", config, "--json", "--quiet"],
  ]);
  const after = await split(log);
  checkReport(replay.stdout);
  return report(replay, before, after);
}

async function writeConfig(): Promise<string> {
  const file = join(folder, "weir.config.json");
  await writeFile(file, JSON.stringify(CONFIG));
  return file;
}

async function split(log: string): Promise<ChildRun> {
  const run = await runChild(fileOf("split-lines.ts"), [log]);
  if (Number(run.stdout) !== lines) throw new Error(`The split found ${run.stdout.trim()} lines.`);
  return run;
}

/** Checks that no line was left out, which would make the replay faster. */
function checkReport(json: string): void {
  const { log, total } = JSON.parse(json);
  if (log.requests === lines && total.requests === lines) return;
  throw new Error(`The replay has read ${log.requests} requests and decided ${total.requests}.`);
}

function report(replay: ChildRun, ...splits: readonly ChildRun[]): boolean {
  const mean = (field: "seconds" | "cpuSeconds") =>
    splits.reduce((sum, run) => sum + run[field], 0) / splits.length;
  const ratio = replay.seconds / mean("seconds");
  const megabytes = replay.peakBytes / 1e6;
  const rate = Math.round(lines / replay.seconds).toLocaleString("en");
  const times = (seconds: number, cpu: number) =>
    `${seconds.toFixed(2)} s (CPU ${cpu.toFixed(2)} s)`;
  console.log(`node:readline  ${times(mean("seconds"), mean("cpuSeconds"))}`);
  console.log(
    `weir replay    ${times(replay.seconds, replay.cpuSeconds)}, ${rate} lines per second`,
  );
  console.log(`ratio          ${ratio.toFixed(2)} (target: at most ${MAX_RATIO})`);
  console.log(`peak memory    ${megabytes.toFixed(0)} MB (target: below ${MAX_MB} MB)`);
  return ratio <= MAX_RATIO && megabytes < MAX_MB;
}

function fileOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

function removeFolder(): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}

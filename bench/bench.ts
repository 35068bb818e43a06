/** `npm run bench`: Weir and its peers side by side, with all that they need beside them. */
import { join, relative } from "node:path";
import { CommanderError } from "commander";
import { stopRequest } from "../dev/stop-request.ts";
import { openStage, type Stage } from "./environment/environment.ts";
import { ISOLATES_LIMIT } from "./experiments/isolates.ts";
import { type BenchOptions, parseOptions } from "./options.ts";
import { writeChart } from "./report/chart.ts";
import { writeJson } from "./report/json.ts";
import {
  addedCpuTable,
  cpuTable,
  floodTable,
  isolatesTable,
  targetsTable,
} from "./report/other-tables.ts";
import { type Results, weirsExcess } from "./report/results.ts";
import { targetsOf } from "./report/targets.ts";
import { workloadTable } from "./report/workload-table.ts";
import { run } from "./run.ts";

const JSON_FILE = join(import.meta.dirname, "results/latest.json");
const CHART_FILE = join(import.meta.dirname, "../docs/performance.svg");
/** What shells say of a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

const code = await main(process.argv.slice(2));
// Not by itself: a run that was interrupted may still be waiting for something.
process.exit(code);

async function main(args: string[]): Promise<number> {
  let stage: Stage | undefined;
  try {
    const options = parseOptions(args);
    const stopRequested = stopRequest();
    stage = await openStage(options.distances);
    const startedAt = Date.now();
    const running = run(stage, options, (text) => {
      const seconds = Math.round((Date.now() - startedAt) / 1000);
      console.error(`${`${seconds}`.padStart(4)} s  ${text}`);
    });
    // When everything is ended under it, it fails, and nobody asks how.
    running.catch(() => {});
    const results = await Promise.race([running, stopRequested]);
    if (results === "stop") return INTERRUPTED;
    return await report(results, options);
  } catch (error) {
    // The parser has printed its own error, or the help.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    return 1;
  } finally {
    await stage?.stop();
  }
}

/** @returns the exit code: only Weir over a limit is a failure, since times depend on the machine. */
async function report(results: Results, options: BenchOptions): Promise<number> {
  const targets = targetsOf(results);
  const tables = results.workloads.map(workloadTable);
  if (results.isolates.length > 0) tables.push(isolatesTable(results.isolates));
  if (results.flood.length > 0) tables.push(floodTable(results.flood));
  if (results.addedCpu) tables.push(addedCpuTable(results.addedCpu));
  if (options.parts.includes("cpu")) tables.push(cpuTable(results));
  const reached = targets.filter(({ measured }) => measured !== undefined);
  tables.push(targetsTable(options.isWhole ? targets : reached));
  if (options.quick) tables.push("A quick run shows that the bench works, and little else.");
  console.log(`\n${tables.join("\n\n")}\n`);

  const json = options.json ?? (options.isWhole ? JSON_FILE : undefined);
  if (json) {
    await writeJson(json, results, targets);
    console.log(`Figures: ${relative(process.cwd(), json)}`);
  }
  // A part of the picture must not take the place of the whole one.
  if (options.isWhole && (await writeChart(CHART_FILE, results))) {
    console.log(`Chart: ${relative(process.cwd(), CHART_FILE)}`);
  }

  const excess = weirsExcess(results, ISOLATES_LIMIT);
  if (excess > 0) console.error(`error: Weir admitted ${excess} requests over the limit.`);
  return excess > 0 ? 1 : 0;
}

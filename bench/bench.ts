/**
 * `npm run bench`: measures Weir and other limiters on one machine, with all the servers that they
 * need.
 */
import { join, relative } from "node:path";
import { CommanderError } from "commander";
import { waitForStopRequest } from "../dev/stop-request.ts";
import { type Environment, startEnvironment } from "./environment/environment.ts";
import { ISOLATES_LIMIT } from "./experiments/isolates.ts";
import { type BenchOptions, parseOptions } from "./options.ts";
import { addedCpuTable, isolatesTable } from "./report/experiment-tables.ts";
import { writeJson } from "./report/json.ts";
import { excessOfWeir, type Results } from "./report/results.ts";
import { workloadTable } from "./report/workload-table.ts";
import { run } from "./run.ts";

const JSON_FILE = join(import.meta.dirname, "results/latest.json");
/** The exit code that shells use for a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

const code = await main(process.argv.slice(2));
// An interrupted run may still wait for a response, which would keep the process alive.
process.exit(code);

async function main(args: string[]): Promise<number> {
  let environment: Environment | undefined;
  try {
    const options = parseOptions(args);
    const stopRequested = waitForStopRequest();
    environment = await startEnvironment(options);
    const startedAt = Date.now();
    const running = run(environment, options, (text) => {
      const seconds = Math.round((Date.now() - startedAt) / 1000);
      console.error(`${`${seconds}`.padStart(4)} s  ${text}`);
    });
    // An interrupted run fails when its environment stops, so its error is ignored.
    running.catch(() => {});
    const results = await Promise.race([running, stopRequested]);
    if (results === "stop") return INTERRUPTED;
    return await report(results, options);
  } catch (error) {
    // Commander has already printed its message.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    return 1;
  } finally {
    await environment?.stop();
  }
}

/** @returns the exit code: 1 if Weir exceeded a limit */
async function report(results: Results, options: BenchOptions): Promise<number> {
  console.log(`\n${tablesOf(results, options).join("\n\n")}\n`);

  const json = options.json ?? (options.isWhole ? JSON_FILE : undefined);
  if (json) {
    await writeJson(json, results);
    console.log(`Figures: ${relative(process.cwd(), json)}`);
  }

  const excess = excessOfWeir(results, ISOLATES_LIMIT);
  if (excess > 0) console.error(`error: Weir admitted ${excess} requests over the limit.`);
  return excess > 0 ? 1 : 0;
}

function tablesOf(results: Results, { quick }: BenchOptions): string[] {
  const tables = results.workloads.map(workloadTable);
  if (results.isolates.length > 0) tables.push(isolatesTable(results.isolates));
  if (results.addedCpu) tables.push(addedCpuTable(results.addedCpu));
  if (quick) tables.push("This quick run tests the bench. Its figures mean little.");
  return tables;
}

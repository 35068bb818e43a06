/** `npm run simulate`: what leases do on up to 10,000 isolates, which one machine cannot show. */
import { join, relative } from "node:path";
import { CommanderError } from "commander";
import { readAccessLog } from "./access-log.ts";
import { writeChart } from "./chart.ts";
import { parseOptions, type SimulationOptions } from "./options.ts";
import { Random } from "./random.ts";
import { summaryTable, writeFigures } from "./report.ts";
import { allScenarios } from "./scenarios/all.ts";
import { faultOf, type Summary } from "./summary.ts";
import { runOnThreads } from "./threads.ts";

const JSON_FILE = join(import.meta.dirname, "../results/simulation.json");
const CHART_FILE = join(import.meta.dirname, "../../docs/simulation.svg");

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  try {
    const options = parseOptions(args);
    const { seed, log, groups } = options;
    if (log !== undefined) await introduce(log);
    const scenarios = allScenarios(log).filter(({ group }) => groups.includes(group));
    const startedAt = performance.now();
    let done = 0;
    const summaries = await runOnThreads(scenarios, { seed, log }, ({ name }) => {
      const seconds = `${Math.round((performance.now() - startedAt) / 1000)}`.padStart(4);
      console.error(`${seconds} s  ${++done} of ${scenarios.length}: ${name}`);
    });
    await report(summaries, options);
    const faults = summaries.flatMap((summary) => faultOf(summary) ?? []);
    for (const fault of faults) console.error(`error: ${fault}`);
    return faults.length > 0 ? 1 : 0;
  } catch (error) {
    // The parser has printed its own error, or the help.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    return 1;
  }
}

/** Says what there is in a log, before anything else takes its time. */
async function introduce(file: string): Promise<void> {
  const log = await readAccessLog(file, new Random(0, "log"));
  const hours = (log.durationMs / 3_600_000).toFixed(1);
  console.error(`${file}: ${log.arrivals.length} requests of ${log.clients} clients in ${hours} h`);
  if (log.unreadable > 0) console.error(`${log.unreadable} lines are of another format: left out`);
}

async function report(summaries: Summary[], options: SimulationOptions): Promise<void> {
  console.log(`\n${summaryTable(summaries)}\n`);
  const { seed, isWhole } = options;
  const json = options.json ?? (isWhole ? JSON_FILE : undefined);
  if (json) {
    await writeFigures(json, seed, summaries);
    console.log(`Figures: ${relative(process.cwd(), json)}`);
  }
  // A part of the picture must not take the place of the whole one.
  if (isWhole) {
    await writeChart(CHART_FILE, summaries);
    console.log(`Chart: ${relative(process.cwd(), CHART_FILE)}`);
  }
}

/**
 * `npm run simulate`: simulates leases on up to 10,000 isolates, which the bench cannot start on one
 * machine.
 */
import { join, relative } from "node:path";
import { CommanderError } from "commander";
import { parseOptions, type SimulationOptions } from "./options.ts";
import { summaryTable, writeFigures } from "./report.ts";
import { allScenarios } from "./scenarios/all.ts";
import { type Summary, violationOf } from "./summary.ts";
import { runOnThreads } from "./threads.ts";

const JSON_FILE = join(import.meta.dirname, "../results/simulation.json");

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  try {
    const options = parseOptions(args);
    const { seed, groups } = options;
    const scenarios = allScenarios().filter(({ group }) => groups.includes(group));
    const startedAt = performance.now();
    let done = 0;
    const summaries = await runOnThreads(scenarios, seed, ({ name }) => {
      const seconds = `${Math.round((performance.now() - startedAt) / 1000)}`.padStart(4);
      console.error(`${seconds} s  ${++done} of ${scenarios.length}: ${name}`);
    });
    await report(summaries, options);
    const violations = summaries.flatMap((summary) => violationOf(summary) ?? []);
    for (const violation of violations) console.error(`error: ${violation}`);
    return violations.length > 0 ? 1 : 0;
  } catch (error) {
    // Commander has already printed its message.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    return 1;
  }
}

async function report(summaries: Summary[], options: SimulationOptions): Promise<void> {
  console.log(`\n${summaryTable(summaries)}\n`);
  const { seed, isWhole } = options;
  const json = options.json ?? (isWhole ? JSON_FILE : undefined);
  if (json) {
    await writeFigures(json, seed, summaries);
    console.log(`Figures: ${relative(process.cwd(), json)}`);
  }
}

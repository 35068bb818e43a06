/**
 * `npm run simulate:fan-in`: simulates how isolates hand over their sums, and counts the calls that each
 * Durable Object gets. It fails if an object gets more than 100 calls in a second.
 */
import { markdownTable } from "markdown-table";
import { MAX_CALLS_PER_SECOND, type Result, simulateFanIn } from "./fan-in.ts";
import { SCENARIOS } from "./scenarios.ts";

const COLUMNS: readonly (readonly [string, (result: Result) => string])[] = [
  ["isolates", ({ isolates }) => format(isolates)],
  ["calls a second: global", ({ calls }) => format(calls.global)],
  ["hub", ({ calls }) => format(calls.hub)],
  ["collector", ({ calls }) => format(calls.collector)],
  ["objects in the last minute", ({ objects }) => format(objects)],
  ["oldest overrides", ({ oldestOverridesMs }) => `${(oldestOverridesMs / 1000).toFixed(1)} s`],
  ["requests", ({ requests }) => format(requests)],
  ["not counted", ({ requests, counted }) => format(requests - counted)],
];

const rows: string[][] = [];
for (const scenario of SCENARIOS) {
  const result = await simulateFanIn(scenario);
  rows.push([scenario.name, ...COLUMNS.map(([, cell]) => cell(result))]);
  const most = Math.max(...Object.values(result.calls));
  console.error(`${scenario.name}: ${most} calls a second`);
  if (most > MAX_CALLS_PER_SECOND) process.exitCode = 1;
}
console.log(markdownTable([["scenario", ...COLUMNS.map(([title]) => title)], ...rows]));

function format(value: number): string {
  return value.toLocaleString("en");
}

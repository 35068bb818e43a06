import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { figure, NONE, table } from "../report/format.ts";
import { PLACES } from "./run-result.ts";
import type { Summary } from "./summary.ts";

const HEAD = [
  "Scenario",
  "Isolates",
  "Limit",
  "Round trip, ms",
  "Offered",
  "Admitted",
  "Over",
  "Under, %",
  "worst window, %",
  "dead / quiet / busy / store, %",
  "Calls per request",
  "From memory, %",
  "Leases returned",
  "p50, ms",
  "p99, ms",
];

const LEGEND = `"Offered", "Admitted" and "Leases returned" are per run; "Admitted" is a range if the runs differ. "Over" counts
the requests admitted above the limit of a window. "Under" is the share of the requests within the limits that were
denied, over all windows. "worst window" is the largest number of such requests in one window, in % of its limit. The
next column shows where the quota for these requests was: in isolates that had died, in isolates without a request of
the client for 5 s, in other isolates, or in the store. "From memory" is the share of requests decided without an
answer from the store. The last two columns show how long requests waited, in virtual time.`;

/** Returns a table with one row for each scenario, and an explanation of its columns. */
export function summaryTable(summaries: readonly Summary[]): string {
  return `${table(HEAD, summaries.map(rowOf))}\n\n${LEGEND}`;
}

function rowOf(summary: Summary): string[] {
  const { wronglyDeniedShare, wronglyDeniedBy, fewestAdmitted, mostAdmitted, runs } = summary;
  const places = PLACES.map((place) => figure(100 * wronglyDeniedBy[place], 0)).join(" / ");
  const range = `${figure(fewestAdmitted, 0)}–${figure(mostAdmitted, 0)}`;
  return [
    summary.name,
    figure(summary.isolates, 0),
    figure(summary.limit, 0),
    figure(summary.roundTripMs, 0),
    figure(summary.offered / runs, 0),
    fewestAdmitted === mostAdmitted ? figure(mostAdmitted, 0) : range,
    figure(summary.over, 0),
    figure(100 * wronglyDeniedShare, 2),
    figure(100 * summary.worstWindowShare, 1),
    wronglyDeniedShare === 0 ? NONE : places,
    figure(summary.callsPerRequest, 3),
    figure(100 * summary.fromMemory, 1),
    figure(summary.returnedLeases / runs, 0),
    figure(summary.p50Ms, 1),
    figure(summary.p99Ms, 1),
  ];
}

/** Writes all figures, and creates the folder if it does not exist. */
export async function writeFigures(
  file: string,
  seed: number,
  scenarios: readonly Summary[],
): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify({ seed, scenarios }, undefined, 2)}\n`);
}

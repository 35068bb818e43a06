import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { figure, NONE, table } from "../report/format.ts";
import { PLACES } from "./figures.ts";
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
  "died / quiet / busy / store, %",
  "Calls per request",
  "From memory, %",
  "Given back",
  "p50, ms",
  "p99, ms",
];

const LEGEND = `Offered, admitted and given back are of one run; a range is of several. "Over" is what was admitted
above a window's limit. "Under" is what was denied of the requests that the limits allowed, min(decided, limit) in each
window: of all windows, and of the worst one in % of its limit; then where that quota lay unspent when the window ended,
with isolates that had died, that had not been asked for 5 s, with others, or in the store. Leases given back are
counted; "from memory" is what was decided without a call of its own. Times are what requests wait, in virtual ms.`;

/** The table, a row for each scenario, and what its columns are. */
export function summaryTable(summaries: readonly Summary[]): string {
  return `${table(HEAD, summaries.map(rowOf))}\n\n${LEGEND}`;
}

function rowOf(summary: Summary): string[] {
  const { missed, missedBy, fewestAdmitted, mostAdmitted, runs } = summary;
  const where = PLACES.map((place) => figure(100 * missedBy[place], 0)).join(" / ");
  const range = `${figure(fewestAdmitted, 0)}–${figure(mostAdmitted, 0)}`;
  return [
    summary.name,
    figure(summary.isolates, 0),
    figure(summary.limit, 0),
    figure(summary.roundTripMs, 0),
    figure(summary.offered / runs, 0),
    fewestAdmitted === mostAdmitted ? figure(mostAdmitted, 0) : range,
    figure(summary.over, 0),
    figure(100 * missed, 2),
    figure(100 * summary.worstMissed, 1),
    missed === 0 ? NONE : where,
    figure(summary.callsPerRequest, 3),
    figure(100 * summary.fromMemory, 1),
    figure(summary.givenBack / runs, 0),
    figure(summary.p50Ms, 1),
    figure(summary.p99Ms, 1),
  ];
}

/** Writes all figures, and makes the folder if it is missing. */
export async function writeFigures(
  file: string,
  seed: number,
  scenarios: readonly Summary[],
): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify({ seed, scenarios }, undefined, 2)}\n`);
}

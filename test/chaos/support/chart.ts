import { join } from "node:path";
import type { Row } from "./verdict.ts";

/** The page that contains the table between two marks. */
export const DOCUMENT = join(import.meta.dirname, "../../../docs/failure.md");

const BEGIN = "<!-- by node test/chaos/table.ts --write -->";
const END = "<!-- end -->";

/**
 * Returns the table of one store. The columns that every run must reproduce come before the
 * measured columns.
 */
export function chartOf(store: string, rows: readonly Row[]): string {
  const head = [
    `| ${store}: a store that … | cause | \`open\` | \`closed\` | \`local\` | slowest | added while open | recovered |`,
    "|---|---|---|---|---|---|---|---|",
  ];
  return [...head, ...rows.map((row) => `${promiseOf(row)} ${figuresOf(row)}`)].join("\n");
}

/** Returns the columns that every run must reproduce. */
export function promiseOf({ does, cause, open, closed, local }: Row): string {
  const code = cause === "–" ? "–" : `\`${cause}\``;
  return `| ${does} | ${code} | ${open} | ${closed} | ${local} |`;
}

function figuresOf({ cause, delayMs, addedMs, recoveredMs }: Row): string {
  const waited = `${delayMs.toFixed(0)} ms`;
  if (cause === "–") return `${waited} | – | – |`;
  return `${waited} | ${addedMs.toFixed(1)} ms | ${(recoveredMs / 1000).toFixed(1)} s |`;
}

/** Returns the document with this table between its marks. */
export function withChart(document: string, chart: string): string {
  const [before, rest] = document.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`docs/failure.md lacks ${BEGIN} and ${END}.`);
  return `${before}${BEGIN}\n\n${chart}\n\n${END}${after}`;
}

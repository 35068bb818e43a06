import { join } from "node:path";
import type { Row } from "./verdict.ts";

/** Where the table stands, between two marks. */
export const DOCUMENT = join(import.meta.dirname, "../../../docs/failure.md");

const BEGIN = "<!-- by node test/chaos/table.ts --write -->";
const END = "<!-- end -->";

/** What is measured stands behind what is promised. */
export function chartOf(store: string, rows: readonly Row[]): string {
  const head = [
    `| ${store}: a store that … | cause in the log | \`open\` | \`closed\` | \`local\` | waited at most | added when open | recovered after |`,
    "|---|---|---|---|---|---|---|---|",
  ];
  return [...head, ...rows.map((row) => `${promiseOf(row)} ${figuresOf(row)}`)].join("\n");
}

/** The part of a line that every run must come to. */
export function promiseOf({ does, cause, open, closed, local }: Row): string {
  const told = cause === "–" ? "–" : `\`${cause}\``;
  return `| ${does} | ${told} | ${open} | ${closed} | ${local} |`;
}

function figuresOf({ cause, delayMs, addedMs, recoveredMs }: Row): string {
  const waited = `${delayMs.toFixed(0)} ms`;
  if (cause === "–") return `${waited} | – | – |`;
  return `${waited} | ${addedMs.toFixed(1)} ms | ${(recoveredMs / 1000).toFixed(1)} s |`;
}

/** A document with the table between its marks. */
export function withChart(document: string, chart: string): string {
  const [before, rest] = document.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`docs/failure.md lacks ${BEGIN} and ${END}.`);
  return `${before}${BEGIN}\n\n${chart}\n\n${END}${after}`;
}

import { stripVTControlCharacters } from "node:util";
import { formatCount } from "../../src/admin/format.ts";
import type { LogSummary } from "../logs/progress.ts";
import { fitted, styled, table, WIDTH, widthOf, wrapped } from "../print/text.ts";

// The parts of the reports of replay and suggest.

/** A word of Weir, a number, or a text of a log or a configuration. Such texts share the remaining columns. */
export type ReportCell = string | number | { readonly code: string };

export interface ReportTable {
  readonly title?: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly ReportCell[])[];
  /** The maximum number of rows on a terminal. `--json` has more. */
  readonly max?: number;
}

const MIN_WIDTH = 10;

/**
 * @param total the number of columns that the table may have
 * @returns an empty text if there is no row
 */
export function textTable(
  { title, headings, rows, max = rows.length }: ReportTable,
  total = WIDTH,
): string {
  const [first] = rows;
  if (!first) return "";
  const more = rows.length - max;
  const names = headings.map((heading) => heading.toUpperCase());
  const tableWith = (shared: (text: string) => string) =>
    table(
      names,
      rows
        .slice(0, max)
        .map((row) => row.map((cell) => (typeof cell === "object" ? shared(cell.code) : cell))),
    );
  // With empty texts, `table` leaves out the columns that share the width.
  const lines = stripVTControlCharacters(tableWith(() => "")).split("\n");
  const left = total - Math.max(...lines.map(widthOf));
  const sharing = first.filter((cell) => typeof cell === "object").length;
  const width = Math.max(MIN_WIDTH, Math.floor(left / sharing) - 2);
  return [
    ...(title === undefined ? [] : [styled("bold", title)]),
    tableWith((text) => fitted(text, width)),
    ...(more > 0 ? [styled("dim", `and ${formatCount(more)} more with --json`)] : []),
  ].join("\n");
}

export function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}

export function textNotes(notes: readonly string[]): string {
  return notes
    .flatMap((text) =>
      wrapped(text, WIDTH - 2).map((line, at) => `${at === 0 ? "! " : "  "}${line}`),
    )
    .map((line) => styled("yellow", line))
    .join("\n");
}

/** Lists the first lines that could not be read, with the reasons. */
export function brokenLinesText({ brokenLines }: LogSummary): string {
  if (brokenLines.length === 0) return "";
  const shown = brokenLines.flatMap(({ file, line, reason }) =>
    wrapped(`${file}:${line}: ${reason}`, WIDTH - 2).map((each) => `  ${each}`),
  );
  return [styled("bold", "Lines that could not be read"), ...shown].join("\n");
}

import { stripVTControlCharacters } from "node:util";
import { formatCount } from "../../src/admin/format.ts";
import type { LogSummary } from "../logs/progress.ts";
import {
  fitted,
  markdownCode,
  markdownText,
  styled,
  table,
  WIDTH,
  widthOf,
  wrapped,
} from "../print/text.ts";

// The parts of the reports of replay and suggest, for a terminal and for Markdown.

/**
 * A word of Weir, a number, or a text of a log or a configuration with its maximum width on a terminal. Texts without
 * a width share the remaining columns.
 */
export type ReportCell = string | number | { readonly code: string; readonly width?: number };

export interface ReportTable {
  readonly title?: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly ReportCell[])[];
  /** The number of rows that are left out. */
  readonly more?: number;
}

const MIN_WIDTH = 10;

/** @returns an empty text if there is no row */
export function textTable({ title, headings, rows, more = 0 }: ReportTable): string {
  const [first] = rows;
  if (!first) return "";
  const names = headings.map((heading) => heading.toUpperCase());
  const tableWith = (shared: (text: string) => string) => {
    const cells = rows.map((row) =>
      row.map((cell) => {
        if (typeof cell !== "object") return cell;
        return cell.width === undefined ? shared(cell.code) : fitted(cell.code, cell.width);
      }),
    );
    return table(names, cells);
  };
  // With empty texts, `table` leaves out the columns that share the width.
  const lines = stripVTControlCharacters(tableWith(() => "")).split("\n");
  const left = WIDTH - Math.max(...lines.map(widthOf));
  const sharing = first.filter((cell) => typeof cell === "object" && cell.width === undefined);
  const width = Math.max(MIN_WIDTH, Math.floor(left / sharing.length) - 2);
  return [
    ...(title === undefined ? [] : [styled("bold", title)]),
    tableWith((text) => fitted(text, width)),
    ...(more > 0 ? [styled("dim", `and ${formatCount(more)} more with --json`)] : []),
  ].join("\n");
}

/** @returns an empty text if there is no row */
export function markdownTable({ title, headings, rows, more = 0 }: ReportTable): string {
  if (rows.length === 0) return "";
  const isNumber = (column: number) =>
    rows.every(
      (row) => typeof row[column] === "number" || /^(?:-|unknown)$/.test(`${row[column]}`),
    );
  const lines = [
    headings,
    headings.map((_, column) => (isNumber(column) ? "---:" : "---")),
    ...rows.map((row) => row.map(markdownCell)),
  ].map((cells) => `| ${cells.join(" | ")} |`);
  return [
    ...(title === undefined ? [] : [`### ${markdownText(title)}`, ""]),
    ...lines,
    ...(more > 0 ? ["", `and ${formatCount(more)} more`] : []),
  ].join("\n");
}

function markdownCell(cell: ReportCell): string {
  if (typeof cell === "object") return markdownCode(cell.code);
  return typeof cell === "number" ? formatCount(cell) : markdownText(cell);
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

export function markdownNotes(notes: readonly string[]): string {
  return notes.map((text) => `- ${markdownText(text)}`).join("\n");
}

/** Lists the first lines that could not be read, with the reasons. */
export function brokenLinesText({ brokenLines }: LogSummary): string {
  if (brokenLines.length === 0) return "";
  const shown = brokenLines.flatMap(({ file, line, reason }) =>
    wrapped(`${file}:${line}: ${reason}`, WIDTH - 2).map((each) => `  ${each}`),
  );
  return [styled("bold", "Lines that could not be read"), ...shown].join("\n");
}

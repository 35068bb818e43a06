import { styleText } from "node:util";
import { formatCount } from "../../src/admin/format.ts";

type Style = Parameters<typeof styleText>[0];

/** The maximum length of a text that a server sent, in characters. */
const MAX_QUOTED = 160;
/**
 * The length from which a secret is hidden, in characters. A shorter secret protects nothing, and may be part of
 * common words.
 */
const MIN_SECRET = 4;
/** The maximum length of any text of a report, in characters. */
const MAX_PRINTED = 10_000;

/** Control characters, line separators, and characters that change the direction of a text. */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g;

/**
 * Returns a text in a form that is safe to print: on one line, without characters that a terminal
 * obeys, and without the given secrets.
 */
export function printable(text: string, secrets: readonly string[] = []): string {
  return secrets
    .filter((secret) => secret.length >= MIN_SECRET)
    .reduce((rest, secret) => rest.replaceAll(secret, "…"), text)
    .slice(0, MAX_PRINTED)
    .replace(UNPRINTABLE, " ")
    .trim();
}

/** Returns a text of a server in a form that is safe to print, and that is not too long. */
export function quoted(text: string, secrets: readonly string[] = []): string {
  const clean = printable(text, secrets);
  return clean.length > MAX_QUOTED ? `${clean.slice(0, MAX_QUOTED)}…` : clean;
}

/** Returns a text of several lines in a form that is safe to print. The spaces before each line stay. */
export function printableLines(text: string): string {
  return text
    .split("\n")
    .map((line) => `${/^ {0,20}/.exec(line)?.[0] ?? ""}${printable(line)}`)
    .join("\n");
}

/** Characters that JSON leaves as they are, but that a terminal obeys or that change the direction of a text. */
const UNSAFE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Returns a value as JSON that is safe to print to a terminal. Parsing the JSON returns an equal value. Each command
 * prints its JSON by this function. A Map becomes an object.
 */
export function jsonText(value: unknown): string {
  const replacer = (_name: string, each: unknown) =>
    each instanceof Map ? Object.fromEntries(each) : each;
  return JSON.stringify(value, replacer, 2).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The width of reports, in columns: the terminal's width, but from 60 to 120; 120 for files and pipes. */
export const WIDTH = process.stdout.isTTY
  ? Math.min(120, Math.max(60, process.stdout.columns))
  : 120;

/** The columns that wrangler prints before each line of the command in `[build]`. */
const WRANGLER_PREFIX = "[custom build] ".length;

/**
 * Returns the width of tables in columns: that of the terminal, or 80 if the output goes to a pipe. Wrangler starts its
 * build with a pipe.
 *
 * @param variables the environment variables, with which wrangler names its command
 */
export function tableWidth({ WRANGLER_COMMAND }: NodeJS.ProcessEnv): number {
  if (process.stdout.isTTY) return WIDTH;
  return WRANGLER_COMMAND === undefined ? 80 : 80 - WRANGLER_PREFIX;
}

/** From this code point on, a character may need two columns, such as Chinese and most emoji. */
const FIRST_WIDE = 0x1100;

/** Returns the number of columns that a text needs at most. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** Adds spaces to a text until it needs `width` columns. */
export function padded(text: string, width: number, side: "left" | "right" = "right"): string {
  const spaces = " ".repeat(Math.max(0, width - widthOf(text)));
  return side === "left" ? spaces + text : text + spaces;
}

/** Returns a text on one line that is safe to print and has at most `width` columns. */
export function fitted(text: string, width: number): string {
  const clean = printable(text);
  if (widthOf(clean) <= width) return clean;
  let [kept, used] = ["", 3];
  for (const character of clean) {
    used += columnsOf(character);
    if (used > width) break;
    kept += character;
  }
  return `${kept.trimEnd()}...`;
}

/** Breaks a text into lines of at most `width` columns at its spaces. Longer words are cut. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of printable(text).split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || widthOf(longer) <= width) {
      line = fitted(longer, width);
    } else {
      lines.push(line);
      line = fitted(word, width);
    }
  }
  return [...lines, line];
}

/** Breaks a text into lines at its spaces, before slashes, and after colons and hyphens. Cuts nothing. */
function broken(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  const pieces = text.split(/(?<=[\s:-])|(?=\/)/);
  for (const piece of pieces.flatMap((each) => (widthOf(each) > width ? [...each] : each))) {
    if (widthOf((line + piece).trimEnd()) > width) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += piece;
  }
  return [...lines, line.trimEnd()];
}

function columnsOf(character: string): number {
  // The block characters of charts and common punctuation are narrow.
  const point = character.codePointAt(0) ?? 0;
  return point < FIRST_WIDE || (point >= 0x2010 && point <= 0x25ff) ? 1 : 2;
}

/**
 * Colours a text, but only on a terminal and without the environment variable NO_COLOR
 * (https://no-color.org).
 */
export function styled(style: Style, text: string): string {
  const isColoured = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}

/** A cell of a table: a text, and its style on a terminal. Numbers are aligned to the right. */
export type Cell = string | number | { readonly text: string | number; readonly style: Style };

/**
 * Returns an aligned table. Columns that are empty in all rows are left out. Texts of clients and
 * operators cannot move the cursor or change colours.
 *
 * @param maxWidth the width of the table, in columns: the widest cells are broken into several lines
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  maxWidth = Number.POSITIVE_INFINITY,
): string {
  const texts = rows.map((row) => row.map(textOf));
  const all = headings.flatMap((heading, column) => {
    const cells = texts.map((row) => row[column] ?? "");
    if (cells.every((cell) => cell === "")) return [];
    const isNumber = rows.every((row) => isNumeric(row[column]));
    const width = Math.max(heading.length, ...cells.map(widthOf));
    return [{ column, isNumber, width }];
  });
  const widths = all.map(({ width }) => width);
  const widest = widestCell(widths, maxWidth - GAP.length * (all.length - 1));
  const columns = all.map((each) => ({ ...each, width: Math.min(each.width, widest) }));
  const linesOf = (cells: readonly string[], row: readonly Cell[] = []) => {
    const broke = columns.map(({ column, width }) => broken(cells[column] ?? "", width));
    return Array.from({ length: Math.max(...broke.map((each) => each.length)) }, (_, line) =>
      columns
        .map(({ column, isNumber, width }, at) => {
          const text = padded(broke[at]?.[line] ?? "", width, isNumber ? "left" : "right");
          const cell = row[column];
          return typeof cell === "object" ? styled(cell.style, text) : text;
        })
        .join(GAP)
        .trimEnd(),
    );
  };
  return [
    ...linesOf(headings).map((line) => styled("dim", line)),
    ...rows.flatMap((row, index) => linesOf(texts[index] ?? [], row)),
  ].join("\n");
}

/** The space between two columns of a table. */
const GAP = "  ";

/** The narrowest cell that is broken into lines, in columns of the terminal. */
const NARROWEST_CELL = 6;

/** Returns the width to which cells are narrowed, so that all columns together need at most `maxWidth`. */
function widestCell(widths: readonly number[], maxWidth: number): number {
  let widest = Math.max(NARROWEST_CELL, ...widths);
  const needed = () => widths.reduce((sum, width) => sum + Math.min(width, widest), 0);
  while (widest > NARROWEST_CELL && needed() > maxWidth) widest--;
  return widest;
}

function textOf(cell: Cell): string {
  const text = typeof cell === "object" ? cell.text : cell;
  return typeof text === "number" ? formatCount(text) : printable(text);
}

function isNumeric(cell: Cell | undefined): boolean {
  const text = typeof cell === "object" ? cell.text : cell;
  return typeof text === "number" || text === undefined || text === "";
}

const BLOCKS = "▁▂▃▄▅▆▇█";

/**
 * Returns a line with one bar for each value, with a space for 0. The highest value has the highest bar.
 *
 * @param width the maximum number of bars; neighbouring values are added up
 */
export function barChart(values: readonly number[], width: number): string {
  const bars = addedUp(values, width);
  const max = Math.max(...bars, 0);
  return bars
    .map((value) => {
      // Any value above 0 has a visible bar.
      const level = Math.max(1, Math.ceil((value / max) * BLOCKS.length));
      return value === 0 ? " " : BLOCKS[level - 1];
    })
    .join("");
}

/** Adds up neighbouring values, so that at most `width` sums remain. */
export function addedUp(values: readonly number[], width: number): number[] {
  const size = Math.max(1, Math.ceil(values.length / width));
  const sums: number[] = [];
  for (const [at, value] of values.entries()) {
    const bar = Math.floor(at / size);
    sums[bar] = (sums[bar] ?? 0) + value;
  }
  return sums;
}

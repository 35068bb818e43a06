import { printable } from "../doctor/finding.ts";

/** The width of reports, in columns: that of the terminal, but from 60 to 120; 120 for files and pipes. */
export const WIDTH = process.stdout.isTTY
  ? Math.min(120, Math.max(60, process.stdout.columns))
  : 120;

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

function columnsOf(character: string): number {
  // The block characters of charts and common punctuation are narrow.
  const point = character.codePointAt(0) ?? 0;
  return point < FIRST_WIDE || (point >= 0x2010 && point <= 0x25ff) ? 1 : 2;
}

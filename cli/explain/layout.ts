import { printable } from "../doctor/finding.ts";
import { WIDTH } from "../print/fit-text.ts";

/** Returns a text on one line, printable and not longer than a number of characters. */
export function shortened(text: string, max: number): string {
  const clean = printable(text);
  return clean.length > max ? `${clean.slice(0, max - 1)}…` : clean;
}

/**
 * Breaks a text into lines.
 *
 * @param first the start of the first line; the other lines are indented by its length
 */
export function wrapped(first: string, text: string, width = WIDTH): string[] {
  const lines: string[] = [];
  const indent = " ".repeat(first.length);
  let line = first;
  let hasWord = false;
  for (const word of printable(text).split(" ")) {
    if (hasWord && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent;
      hasWord = false;
    }
    line += hasWord ? ` ${word}` : word;
    hasWord = true;
  }
  return [...lines, line];
}

/** Indents each line of a text. */
export function indented(text: string, spaces: number): string {
  return text.replace(/^(?=.)/gm, " ".repeat(spaces));
}

/** Formats a time in UTC with its seconds: `2026-11-22 17:04:05Z`. */
export function second(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

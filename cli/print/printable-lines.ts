import { printable } from "../doctor/finding.ts";

/** Returns a text of several lines in a form that is safe to print. The spaces before each line stay. */
export function printableLines(text: string): string {
  return text
    .split("\n")
    .map((line) => `${/^ {0,20}/.exec(line)?.[0] ?? ""}${printable(line)}`)
    .join("\n");
}

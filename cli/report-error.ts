import { jsonText } from "./print/json-text.ts";
import { printableLines } from "./print/printable-lines.ts";

/** Returns the report for a terminal about a file that could not be loaded. */
export function textError(file: string, error: string): string {
  return printableLines(`${file} could not be loaded.\n${error}`);
}

/** Returns the JSON of `--json` about a file that could not be loaded. */
export function jsonError(file: string, error: string): string {
  return jsonText({ ok: false, config: file, error });
}

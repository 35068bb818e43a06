/** Returns the report for a terminal about a file that could not be loaded. */
export function textError(file: string, error: string): string {
  return `${file} could not be loaded.\n${error}`;
}

/** Returns the JSON of `--json` about a file that could not be loaded. */
export function jsonError(file: string, error: string): string {
  return JSON.stringify({ ok: false, config: file, error }, undefined, 2);
}

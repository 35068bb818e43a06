import { readFileSync, writeFileSync } from "node:fs";

/**
 * Whether the last check has printed the same report. Only `npm run dev` of a project that the starter created sets the
 * variable `WEIR_CHECK_PRINTED`, the path of a file that keeps the report: wrangler 4.86 runs the check three times when
 * it starts.
 */
export function isRepeated(
  report: string,
  { WEIR_CHECK_PRINTED: file }: NodeJS.ProcessEnv,
): boolean {
  if (!file) return false;
  try {
    // Without this flag, the file would have to exist.
    const before = readFileSync(file, { encoding: "utf8", flag: "a+" });
    if (before === report) return true;
    writeFileSync(file, report);
  } catch {
    // A report that cannot be kept is printed again.
  }
  return false;
}

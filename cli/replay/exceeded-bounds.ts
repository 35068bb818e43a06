import type { FailedBound, ReplayReport } from "./report.ts";

interface Bounds {
  /** How many clients may be denied, and how many may be newly denied; undefined: any number. */
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
}

/** Returns the bounds that a replay has exceeded. Clients are counted by their addresses. */
export function exceededBounds(
  { total, comparison }: ReplayReport,
  { maxDenied, maxNewlyDenied }: Bounds,
): FailedBound[] {
  const bounds = [
    { option: "--max-denied", allowed: maxDenied, clients: total.clientsDenied },
    {
      option: "--max-newly-denied",
      allowed: maxNewlyDenied,
      clients: comparison?.clients.newlyDenied ?? 0,
    },
  ] as const;
  return bounds.flatMap(({ option, allowed, clients }) =>
    allowed !== undefined && clients > allowed ? [{ option, allowed, clients }] : [],
  );
}

/** Returns why the bounds cannot be checked; undefined if they can be, or if there is none. */
export function uncheckedBounds(
  { log }: Pick<ReplayReport, "log">,
  { maxDenied, maxNewlyDenied }: Bounds,
): string | undefined {
  if (!log.isIncomplete || (maxDenied === undefined && maxNewlyDenied === undefined)) return;
  return "--max-denied and --max-newly-denied need the whole log, but a file could not be read to its end. The rest may have more denied clients. The notes of the report name the file.";
}

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

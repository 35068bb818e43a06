import { monthlyDollars, storeCost } from "../../src/admin/dashboard/cost.ts";
import type { Config } from "../../src/config/schema.ts";
import type { StoreUsage } from "./replay-engine.ts";
import type { CostReport } from "./report.ts";

/** A shorter log says too little about a month. */
const MIN_PERIOD_MS = 3_600_000;

/**
 * Returns what the calls to the store would have cost.
 *
 * @param periodMs the time from the first request to the last one
 * @returns undefined for the store in memory, which is free
 */
export function costReport(
  usage: StoreUsage,
  store: Config["store"],
  periodMs: number,
): CostReport | undefined {
  const cost = storeCost(usage, store);
  if (cost === undefined) return undefined;
  const { unit, count, dollars } = cost;
  const isLong = periodMs >= MIN_PERIOD_MS;
  return {
    ...{ unit, count, calls: usage.calls, dollars },
    dollarsPer30Days: isLong ? monthlyDollars(dollars, periodMs) : undefined,
  };
}

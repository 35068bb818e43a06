import type { Config } from "../../config/schema.ts";
import type { StoreSums } from "../../statistics/sums.ts";

// The prices of docs/cost.md, in US dollars. An estimate does not include free quotas, discounts, the time that
// objects are in memory, and the Worker itself.

/** The price of one command of Upstash Redis, pay as you go. */
const REDIS_COMMAND = 0.2 / 100_000;
/** The price of one call to a Durable Object, and of one row that it writes. Some calls write none, others several. */
const OBJECT_CALL = (0.15 + 1) / 1_000_000;

const MONTH_MS = 30 * 86_400_000;

export interface StoreCost {
  /** The cost of the given calls. */
  readonly dollars: number;
  /** The unit of `count`. */
  readonly unit: "Redis commands" | "calls to Durable Objects";
  readonly count: number;
}

/** Estimates the cost of calls to the store. @returns undefined for the store in memory, which is free */
export function storeCost(
  { commands, calls }: Pick<StoreSums, "commands" | "calls">,
  store: Config["store"],
): StoreCost | undefined {
  if (store === "memory") return undefined;
  if (commands > 0 || store === "upstash") {
    return { dollars: commands * REDIS_COMMAND, unit: "Redis commands", count: commands };
  }
  return { dollars: calls * OBJECT_CALL, unit: "calls to Durable Objects", count: calls };
}

/** Projects the cost of a period to 30 days. */
export function monthlyDollars(dollars: number, periodMs: number): number {
  return periodMs > 0 ? (dollars * MONTH_MS) / periodMs : 0;
}

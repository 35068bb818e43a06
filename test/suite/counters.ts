import type { Ban } from "../../src/config/ban.ts";
import type { Adjustment, Demand } from "../../src/engine/counter.ts";

/**
 * Returns a new counter. By default, it is the counter of a new client with a limit of five
 * requests a minute.
 */
export function counter(fields: Partial<Demand & Adjustment> = {}): Demand {
  const identity = fields.identity ?? crypto.randomUUID();
  const limit = fields.limit ?? 5;
  return {
    key: `test:rule:1m:${identity}:${crypto.randomUUID()}`,
    identity,
    limit,
    ceiling: limit,
    windowMs: 60_000,
    offsetMs: 0,
    cost: 1,
    ...fields,
  };
}

/** Returns bans with these lengths. The store remembers strikes for the last of them. */
export function bans(...lengthsMs: readonly number[]): Ban {
  return { lengthsMs, forgetAfterMs: lengthsMs.at(-1) as number };
}

import { formatDuration } from "./duration.ts";
import type { ParsedLimit, ParsedLimitFields } from "./limits.ts";

/** One limit of a rule or of one of its tiers, with the windows that it applies to. */
export interface Window {
  /**
   * The name of the policy in the RateLimit fields: the name of the rule, or, if the rule has
   * several limits, the name with the window, such as `search/1m`.
   */
  readonly policy: string;
  /** How much quota each window adds. */
  readonly limit: number;
  /** The maximum quota that a client can have; equal to `limit` if no quota rolls over. */
  readonly capacity: number;
  /** The maximum quota of later windows that can be reserved. */
  readonly maxReserved: number;
  readonly windowMs: number;
  /**
   * The time at which a window begins, in milliseconds after the Unix epoch, modulo `windowMs`. So
   * 0 ≤ offsetMs < windowMs.
   */
  readonly offsetMs: number;
}

/**
 * Returns the windows of a rule or of one of its tiers.
 *
 * @param name the name of the rule
 * @param startMs the time at which one of the windows begins, in milliseconds after the Unix epoch
 */
export function windowsOf(name: string, fields: ParsedLimitFields, startMs: number): Window[] {
  // If `limits` is not set, the schema has checked that `limit` and `window` are set.
  const all = fields.limits ?? [fields as ParsedLimit];
  return all.map(({ limit, window, capacity = limit, maxReserved = 0 }) => ({
    policy: all.length === 1 ? name : `${name}/${formatDuration(window)}`,
    limit,
    capacity,
    maxReserved,
    windowMs: window * 1000,
    offsetMs: floorMod(startMs, window * 1000),
  }));
}

/** Returns a remainder that is never negative, even for starts before 1970. */
function floorMod(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

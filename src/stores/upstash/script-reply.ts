import { type Counter, longestWindowMs, MAX_COUNT, type Tally } from "../../engine/counter.ts";
import { failedGroup, type GroupRole, roleOf, SKIPPED } from "../group-roles.ts";
import type { GroupAnswer, Verdict } from "../store.ts";
import { StoreError } from "../store-error.ts";

// Reads the replies of the scripts. Every integer in a reply is checked, because the configured URL
// may belong to a server that is not Redis.

/**
 * The largest integer that the script may return as a group's verdict: 1 (admitted), 2 (failed) or
 * 3 (skipped).
 */
const LAST_VERDICT: Record<GroupRole, number> = { enforced: 1, shadow: 2, dependent: 3 };

/**
 * Reads the reply of the decide script.
 *
 * @throws {StoreError} ("invalid-reply") unless the reply has exactly the expected integers
 */
export function readVerdict(reply: unknown, groups: readonly (readonly Counter[])[]): Verdict {
  const integers = new IntegerReader(reply);
  const now = integers.next(0, MAX_COUNT);
  const verdicts = groups.map((counters): GroupAnswer => {
    const verdict = integers.next(0, LAST_VERDICT[roleOf(counters)]);
    if (verdict === 3) return SKIPPED;
    if (verdict === 2) return failedGroup(new StoreError("error-reply", "a command failed"));
    const admitted = verdict === 1;
    const tallies = counters.map((counter) => readChargedTally(counter, admitted, integers));
    return { admitted, tallies };
  });
  integers.end();
  return { now, groups: verdicts };
}

/**
 * Reads the reply of the adjust script.
 *
 * @throws {StoreError} ("invalid-reply") unless the reply has exactly the expected integers
 */
export function readTallies(reply: unknown, counters: readonly Counter[]): Tally[] {
  const integers = new IntegerReader(reply);
  const tallies = counters.map((counter) => readTally(counter, integers));
  integers.end();
  return tallies;
}

/** Reads a tally, and the quota charged, which follows the tally in the reply. */
function readChargedTally(counter: Counter, admitted: boolean, integers: IntegerReader): Tally {
  const { cost, block, checkOnly, alternative } = counter;
  const tally = readTally(counter, integers);
  if (!admitted || checkOnly) {
    const charged = integers.next(0, 0);
    return block === undefined ? tally : { ...tally, charged };
  }
  const most = Math.max(cost, block ?? 0);
  const charge = integers.next(alternative ? -most : cost, most);
  const charged = Math.abs(charge);
  if (charged < cost) throw invalidReply();
  return {
    ...tally,
    ...(block !== undefined && { charged }),
    ...(charge < 0 && { inAlternative: true }),
  };
}

function readTally(counter: Counter, integers: IntegerReader): Tally {
  // A ban keeps its length even if the rule has a shorter ban now, so a longer time is accepted.
  const longestBanMs = counter.banMs ? MAX_COUNT : 0;
  // If a counter rolls over, its reset can be the end of a window after the current one.
  return {
    count: integers.next(0, MAX_COUNT),
    resetMs: integers.next(1, counter.rollsOver ? MAX_COUNT : longestWindowMs(counter)),
    banMs: integers.next(0, longestBanMs),
  };
}

/** Reads the integers of a reply one after another. */
class IntegerReader {
  readonly #values: readonly unknown[];
  #at = 0;

  constructor(reply: unknown) {
    this.#values = Array.isArray(reply) ? reply : [];
  }

  /** @throws {StoreError} ("invalid-reply") unless the next value is an integer from `min` to `max` */
  next(min: number, max: number): number {
    const value = this.#values[this.#at++];
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
      throw invalidReply();
    }
    return value as number;
  }

  /** @throws {StoreError} ("invalid-reply") if the reply has more values */
  end(): void {
    if (this.#at !== this.#values.length) throw invalidReply();
  }
}

function invalidReply(): StoreError {
  return new StoreError("invalid-reply", "the script's reply does not have the expected integers");
}

import { type Counter, MAX_COUNT, type Tally } from "../../engine/counter.ts";
import { failedGroup, isShadow } from "../shadow-groups.ts";
import type { GroupAnswer, Verdict } from "../store.ts";
import { StoreError } from "../store-error.ts";

// Reads what the scripts reply, trusting nothing in it.

/** @throws {StoreError} ("invalid-reply") unless the reply is just the integers that were asked for */
export function readVerdict(reply: unknown, groups: readonly (readonly Counter[])[]): Verdict {
  const next = integersOf(reply);
  const now = next(0, MAX_COUNT);
  const verdicts = groups.map((counters): GroupAnswer => {
    const verdict = next(0, isShadow(counters) ? 2 : 1);
    if (verdict === 2) return failedGroup(new StoreError("error-reply", "a command failed"));
    const admitted = verdict === 1;
    return { admitted, tallies: counters.map((counter) => decidedTally(counter, admitted, next)) };
  });
  next.end();
  return { now, groups: verdicts };
}

/** @throws {StoreError} ("invalid-reply") unless the reply is just the integers that were asked for */
export function readTallies(reply: unknown, counters: readonly Counter[]): Tally[] {
  const next = integersOf(reply);
  const tallies = counters.map((counter) => tallyOf(counter, next));
  next.end();
  return tallies;
}

type Integers = ((min: number, max: number) => number) & { end(): void };

/** A tally, and behind it what was charged. */
function decidedTally(counter: Counter, admitted: boolean, next: Integers): Tally {
  const { cost, block, checkOnly } = counter;
  const tally = tallyOf(counter, next);
  const isCharged = admitted && !checkOnly;
  const charged = isCharged ? next(cost, Math.max(cost, block ?? 0)) : next(0, 0);
  return block === undefined ? tally : { ...tally, charged };
}

function tallyOf({ windowMs, banMs }: Counter, next: Integers): Tally {
  // A ban lasts for what it was made for, whatever the rule says by now.
  const longestBan = banMs ? MAX_COUNT : 0;
  return { count: next(0, MAX_COUNT), resetMs: next(1, windowMs), banMs: next(0, longestBan) };
}

function integersOf(reply: unknown): Integers {
  const values: readonly unknown[] = Array.isArray(reply) ? reply : [];
  let at = 0;
  const next = (min: number, max: number): number => {
    const value = values[at++];
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
      throw nonsense();
    }
    return value as number;
  };
  const end = () => {
    if (at !== values.length) throw nonsense();
  };
  return Object.assign(next, { end });
}

function nonsense(): StoreError {
  return new StoreError("invalid-reply", "the script's reply is not the integers asked for");
}

import fc from "fast-check";
import { type Demand, MAX_COUNT, type Tally } from "../../src/engine/counter.ts";
import { StoreError } from "../../src/stores/store.ts";
import { readAnswers } from "../../src/stores/upstash/wire.ts";
import { createTarget } from "../property.ts";

const WINDOW_MS = 60_000;

const counter: fc.Arbitrary<Demand> = fc
  .tuple(fc.nat(9), fc.nat(99), fc.option(fc.nat(9)), fc.boolean(), fc.boolean())
  .map(([cost, limit, block, bans, checkOnly]) => ({
    key: "fuzz:rule:1m:a",
    identity: "a",
    limit,
    ceiling: limit,
    windowMs: WINDOW_MS,
    offsetMs: 0,
    cost,
    ...(block !== null && { block }),
    ...(bans && { ban: { lengthsMs: [WINDOW_MS], forgetAfterMs: WINDOW_MS } }),
    ...(checkOnly && { checkOnly }),
  }));

/** Integers near the bounds of valid replies, so that some replies are valid. */
const integer = fc.oneof(
  { weight: 6, arbitrary: fc.nat(2) },
  { weight: 3, arbitrary: fc.constantFrom(WINDOW_MS, WINDOW_MS + 1, 2 ** 53 - 1, 2 ** 53, -1) },
  { weight: 1, arbitrary: fc.oneof(fc.double(), fc.jsonValue({ maxDepth: 1 })) },
);

const scenario = fc.record({
  counters: fc.array(counter, { minLength: 1, maxLength: 3 }),
  reply: fc.oneof(
    { weight: 9, arbitrary: fc.array(integer, { maxLength: 30 }) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  ),
  /** Whether the list is cut or filled to the expected length. */
  fits: fc.boolean(),
});

/** The target for replies of the scripts, or of a server that answers in place of Redis. */
export const replyTarget = createTarget(
  "reply",
  "a store's answer is read as exactly the requested integers, or refused",
  scenario,
  ({ counters, reply, fits }) => {
    const nothing = { now: undefined, unused: [], adjusted: [], removed: [] };
    const decided = { ...nothing, group: counters, times: 1 };
    const merged = { ...nothing, group: counters, times: 3 };
    const adjusted = { ...nothing, adjusted: counters, times: 1 };
    const expectedLengths = [3 + 4 * counters.length, undefined, 3 + 3 * counters.length];
    for (const [index, entry] of [decided, merged, adjusted].entries()) {
      const length = expectedLengths[index];
      const values = fits && length && Array.isArray(reply) ? fill(reply, length) : reply;
      const errorOf = (message: string) => new StoreError("error-reply", message);
      const read = tryRead(() => readAnswers(values, [entry], "store", errorOf));
      const [answers = []] = read?.answers ?? [];
      for (const answer of answers) {
        const result = answer.decided;
        const decidedTallies = result && !(result instanceof StoreError) ? result.tallies : [];
        for (const [at, tally] of decidedTallies.entries()) {
          checkBounds(tally, counters[at], entry.times);
        }
        const tallies = answer.adjusted instanceof StoreError ? [] : (answer.adjusted ?? []);
        for (const [at, tally] of tallies.entries()) checkBounds(tally, counters[at]);
      }
    }
  },
);

function fill(values: readonly unknown[], length: number): unknown[] {
  return Array.from({ length }, (_, index) => values[index] ?? 1);
}

function tryRead<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof StoreError && error.failure === "invalid-reply") return undefined;
    throw error;
  }
}

/** @throws if no state of the counter can have this tally */
function checkBounds(tally: Tally | undefined, counter: Demand | undefined, times = 1): void {
  if (!tally || !counter)
    throw new Error("a counter without a tally, or a tally without a counter");
  const { cost, block, windowMs, ban } = counter;
  const { isUncertain, ring, ...numbers } = tally;
  if (ring) throw new Error("counts of sub-windows that nobody asked for");
  if (isUncertain) throw new Error("a count of Redis is certain");
  const bounds: Record<keyof typeof numbers, readonly [min: number, max: number]> = {
    count: [0, MAX_COUNT],
    resetMs: [1, windowMs],
    banMs: [0, ban ? MAX_COUNT : 0],
    charged: [0, Math.max(times * cost, block ?? 0)],
    // No number fits these bounds, because replies of Redis, which has one clock and no holds, lack these fields.
    chargedIn: [1, 0],
    retryMs: [1, 0],
  };
  for (const [name, value] of Object.entries(numbers) as [keyof typeof numbers, number][]) {
    const [min, max] = bounds[name];
    const fits = Number.isSafeInteger(value) && value >= min && value <= max;
    if (!fits) throw new Error(`${name} is ${value}`);
  }
}

import fc from "fast-check";
import { MAX_LIMIT } from "../../src/config/limits.ts";
import { type Counter, MAX_COUNT, type UnusedQuota, windowAt } from "../../src/engine/counter.ts";

/** The shortest ban: none ends while a case is being tried. */
const MIN_BAN_MS = 600_000;
const MAX_WINDOW_MS = 31_449_600_000;

/** Calls of a store one after the other, each at its time. */
export type Calls = readonly ({ readonly now: number } & (
  | { readonly does: "decide"; readonly groups: Counter[][]; readonly unused: UnusedQuota[] }
  | { readonly does: "adjust" | "reset"; readonly counters: Counter[] }
))[];

/** Small numbers are used up in a few steps; large ones show where digits are lost. */
const amount = fc.oneof(
  { weight: 4, arbitrary: fc.nat(9) },
  { weight: 2, arbitrary: fc.nat(200) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: MAX_LIMIT }) },
);

/** What one counter of a case has for good. */
const quota = fc.record({
  limit: amount,
  more: amount,
  reserved: amount,
  windowMs: fc.oneof(fc.constantFrom(1000, 60_000), fc.integer({ min: 1000, max: MAX_WINDOW_MS })),
  offset: fc.double({ min: 0, max: 1, noNaN: true }),
  kind: fc.constantFrom("plain", "plain", "rolls", "rolls", "bans", "shards"),
  banMs: fc.integer({ min: MIN_BAN_MS, max: MAX_WINDOW_MS }),
});
type Quota = typeof quota extends fc.Arbitrary<infer Value> ? Value : never;

/** What is asked of it. */
const ask = fc.record({
  cost: amount,
  reserve: fc.boolean(),
  checkOnly: fc.boolean(),
  neverBans: fc.boolean(),
  block: fc.option(amount, { nil: undefined }),
  group: fc.nat(2),
});
type Ask = typeof ask extends fc.Arbitrary<infer Value> ? Value : never;

const perQuota = <Value>(each: fc.Arbitrary<Value>) =>
  fc.array(fc.option(each, { freq: 2 }), { minLength: 3, maxLength: 3 });
const change = fc
  .tuple(
    fc.oneof(
      { weight: 9, arbitrary: amount },
      { weight: 1, arbitrary: fc.constantFrom(MAX_LIMIT, MAX_COUNT) },
    ),
    fc.boolean(),
  )
  .map(([by, less]) => (less ? -by : by));
const step = fc.record({
  passes: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.double({ min: -2, max: 4, noNaN: true }) },
  ),
  does: fc.constantFrom("decide", "decide", "decide", "decide", "adjust", "reset"),
  asks: perQuota(ask),
  changes: perQuota(change),
  returns: perQuota(fc.record({ quota: amount, windowsAgo: fc.nat(1) })),
});

export const drawn = fc.record({
  quotas: fc.array(quota, { minLength: 3, maxLength: 3 }),
  startMs: fc.oneof(fc.nat(2 ** 31 - 1), fc.integer({ min: 0, max: 2 ** 42 })),
  steps: fc.array(step, { minLength: 1, maxLength: 80, size: "max" }),
});
export type Drawn = typeof drawn extends fc.Arbitrary<infer Value> ? Value : never;

/** @param id makes the keys of a case its own */
export function callsFrom({ quotas, startMs, steps }: Drawn, id: string): Calls {
  // Bans end by Redis's own clock, so where there are some, no other passes.
  const stands = quotas.some(({ kind }) => kind === "bans");
  const shortest = Math.min(...quotas.map(({ windowMs }) => windowMs));
  let now = startMs;
  return steps.map(({ passes, does, asks, changes, returns }) => {
    if (!stands) now = Math.max(0, now + Math.round(passes * shortest));
    const counterAt = (index: number, ask: Partial<Ask>) =>
      counterOf(quotas[index] as Quota, `${id}${index}`, ask);
    if (does === "decide") {
      const asked = present(asks, (index, ask) => ({ ask, counter: counterAt(index, ask) }));
      const groups = [0, 1, 2].map((number) =>
        asked.filter(({ ask }) => ask.group === number).map(({ counter }) => counter),
      );
      const unused = present(returns, (index, { quota, windowsAgo }): UnusedQuota => {
        const counter = counterAt(index, {});
        return { counter, quota, window: windowAt(now, counter).index - windowsAgo };
      }).filter(({ counter }) => !counter.rollsOver && !counter.alternative);
      return { now, does, groups: groups.filter(({ length }) => length > 0), unused };
    }
    const counters = present(changes, (index, cost) => counterAt(index, { cost }));
    return { now, does, counters };
  });
}

function counterOf(
  { limit, more, reserved, windowMs, offset, kind, banMs }: Quota,
  identity: string,
  { cost = 0, reserve = false, checkOnly = false, neverBans = false, block }: Partial<Ask>,
): Counter {
  const rollsOver = kind === "rolls" && limit > 0;
  const capacity = rollsOver ? Math.min(MAX_LIMIT, limit + more) : limit;
  const ceiling = capacity + (rollsOver && reserve ? reserved : 0);
  const counter: Counter = {
    key: identity,
    identity,
    limit,
    windowMs,
    offsetMs: Math.floor(offset * (windowMs - 1)),
    cost,
    ceiling,
    ...(rollsOver && { rollsOver }),
    ...(checkOnly && { checkOnly }),
    ...(block !== undefined && { block }),
    ...(kind === "bans" && { banMs }),
    ...(neverBans && { neverBans }),
  };
  if (kind !== "shards") return counter;
  const less = Math.min(limit, more % 2);
  const [key, share] = [`${identity}#1`, limit - less];
  return {
    ...counter,
    alternative: { ...counter, key, identity: key, limit: share, ceiling: share },
  };
}

function present<T, R>(values: readonly (T | null)[], make: (index: number, value: T) => R): R[] {
  return values.flatMap((value, index) => (value === null ? [] : [make(index, value)]));
}

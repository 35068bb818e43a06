import fc from "fast-check";
import { CALENDAR_UNITS, calendarOf, unitLengthMs } from "../../src/config/calendar.ts";
import { MAX_LIMIT } from "../../src/config/window.ts";
import { type Demand, MAX_COUNT, type UnusedQuota, windowAt } from "../../src/engine/counter.ts";

/** The shortest ban, in milliseconds. It is so long that no ban ends while a case runs. */
const MIN_BAN_MS = 600_000;
const MAX_WINDOW_MS = 31_449_600_000;

/** Consecutive calls to a store, each with its time in milliseconds. */
export type Calls = readonly ({ readonly now: number } & (
  | { readonly method: "decide"; readonly groups: Demand[][]; readonly unused: UnusedQuota[] }
  | { readonly method: "adjust" | "reset"; readonly counters: Demand[] }
))[];

/** An amount of quota: small, so that a few calls use it up, or large, to show whether digits are lost. */
const amount = fc.oneof(
  { weight: 4, arbitrary: fc.nat(9) },
  { weight: 2, arbitrary: fc.nat(200) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: MAX_LIMIT }) },
);

/** A calendar, in zones with and without changes of the clocks. */
const calendar = fc
  .record({
    unit: fc.constantFrom(...CALENDAR_UNITS),
    zone: fc.constantFrom("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"),
    month: fc.integer({ min: 1, max: 12 }),
    day: fc.integer({ min: 1, max: 31 }),
    weekday: fc.integer({ min: 1, max: 7 }),
    minute: fc.nat(24 * 60 - 1),
  })
  .map(({ unit, zone, minute, ...start }) =>
    calendarOf(unit, zone, { ...start, timeMs: minute * 60_000 }),
  );

/** The properties of a counter that stay the same during a case. */
const quota = fc.record({
  limit: amount,
  more: amount,
  reserved: amount,
  windowMs: fc.oneof(fc.constantFrom(1000, 60_000), fc.integer({ min: 1000, max: MAX_WINDOW_MS })),
  offset: fc.double({ min: 0, max: 1, noNaN: true }),
  kind: fc.constantFrom("plain", "plain", "rolls", "rolls", "bans"),
  banMs: fc.integer({ min: MIN_BAN_MS, max: MAX_WINDOW_MS }),
  forgetAfterMs: fc.integer({ min: 1, max: MAX_WINDOW_MS }),
  calendar: fc.option(calendar, { freq: 2, nil: undefined }),
});
type Quota = typeof quota extends fc.Arbitrary<infer Value> ? Value : never;

/** The properties of a counter that differ between calls. */
const charge = fc.record({
  cost: amount,
  reserve: fc.boolean(),
  checkOnly: fc.boolean(),
  neverBans: fc.boolean(),
  /** Whether later bans are longer. This changes between calls, as after a deploy. */
  escalates: fc.boolean(),
  block: fc.option(amount, { nil: undefined }),
  group: fc.nat(2),
});
type Charge = typeof charge extends fc.Arbitrary<infer Value> ? Value : never;

const perCounter = <Value>(each: fc.Arbitrary<Value>) =>
  fc.array(fc.option(each, { freq: 2 }), { minLength: 3, maxLength: 3 });
const correction = fc
  .tuple(
    fc.oneof(
      { weight: 9, arbitrary: amount },
      { weight: 1, arbitrary: fc.constantFrom(MAX_LIMIT, MAX_COUNT) },
    ),
    fc.boolean(),
  )
  .map(([amount, isNegative]) => (isNegative ? -amount : amount));
const call = fc.record({
  elapsedWindows: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.double({ min: -2, max: 4, noNaN: true }) },
  ),
  method: fc.constantFrom("decide", "decide", "decide", "decide", "adjust", "reset"),
  charges: perCounter(charge),
  corrections: perCounter(correction),
  returns: perCounter(fc.record({ quota: amount, windowsAgo: fc.nat(1) })),
});

/** A case consists of three counters and the calls that use them. */
export const scenario = fc.record({
  quotas: fc.array(quota, { minLength: 3, maxLength: 3 }),
  startMs: fc.oneof(fc.nat(2 ** 31 - 1), fc.integer({ min: 0, max: 2 ** 42 })),
  calls: fc.array(call, { minLength: 1, maxLength: 80, size: "max" }),
});
export type Scenario = typeof scenario extends fc.Arbitrary<infer Value> ? Value : never;

/** @param id a prefix of the keys, so that cases share no counters */
export function callsFrom({ quotas, startMs, calls }: Scenario, id: string): Calls {
  // Redis ends bans by its own clock, so the time does not change in a case with bans.
  const isTimeFixed = quotas.some(({ kind }) => kind === "bans");
  const shortestMs = Math.min(...quotas.map(lengthOf));
  let now = Math.max(1, startMs);
  return calls.map(({ elapsedWindows, method, charges, corrections, returns }) => {
    if (!isTimeFixed) now = Math.max(1, now + Math.round(elapsedWindows * shortestMs));
    const counterAt = (index: number, charge: Partial<Charge>) =>
      counterOf(quotas[index] as Quota, `${id}${index}`, charge);
    if (method === "decide") {
      const charged = mapPresent(charges, (index, charge) => ({
        group: charge.group,
        counter: counterAt(index, charge),
      }));
      const groups = [0, 1, 2].map((number) =>
        charged
          .filter(({ group }) => group === number)
          .map(({ counter }) => (number === 2 ? { ...counter, marks: true } : counter)),
      );
      const unused = mapPresent(returns, (index, { quota, windowsAgo }) => {
        const counter = counterAt(index, {});
        const window = windowAt(now, counter).index - windowsAgo;
        return { counter, quota, window } satisfies UnusedQuota;
      }).filter(({ counter }) => !counter.rollsOver);
      return { now, method, groups: groups.filter(({ length }) => length > 0), unused };
    }
    const counters = mapPresent(corrections, (index, cost) => counterAt(index, { cost }));
    return { now, method, counters };
  });
}

function lengthOf({ windowMs, calendar }: Quota): number {
  return calendar ? unitLengthMs(calendar.unit) : windowMs;
}

function counterOf(quota: Quota, identity: string, charge: Partial<Charge>): Demand {
  const { limit, more, reserved, offset, kind, banMs, forgetAfterMs, calendar } = quota;
  const { cost = 0, reserve = false, checkOnly = false, neverBans = false, block } = charge;
  const windowMs = lengthOf(quota);
  const lengthsMs = charge.escalates ? [banMs, 2 * banMs, 2 * banMs] : [banMs];
  const rollsOver = kind === "rolls" && limit > 0;
  const capacity = rollsOver ? Math.min(MAX_LIMIT, limit + more) : limit;
  const ceiling = capacity + (rollsOver && reserve ? reserved : 0);
  const counter: Demand = {
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
    ...(calendar && { calendar }),
    ...(kind === "bans" && { ban: { lengthsMs, forgetAfterMs } }),
    ...(neverBans && { neverBans }),
  };
  return counter;
}

/** Calls a function for each value that is not null, and returns the results. */
function mapPresent<T, R>(
  values: readonly (T | null)[],
  make: (index: number, value: T) => R,
): R[] {
  return values.flatMap((value, index) => (value === null ? [] : [make(index, value)]));
}

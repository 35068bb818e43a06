import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Ban } from "../../src/config/ban.ts";
import { calendarOf } from "../../src/config/calendar.ts";
import type { Counter, Demand, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";
import { counter } from "./counters.ts";
import { propertyRuns } from "./runs.ts";
import { verdictOf } from "./verdict.ts";

const HOUR = 3_600_000;
/**
 * The length of a tick, in milliseconds. Windows begin at multiples of a tick. Most steps of the
 * clock are whole ticks, so some operations come right after the start of a window.
 */
const TICK = 20_000;

/** Bans. Several lengths are for bans that become longer. */
const BANS = [[TICK], [7 * TICK], [TICK, 3 * TICK, 8 * TICK], [2 * TICK, 2 * TICK, 5 * TICK]].map(
  (lengthsMs): Ban => ({ lengthsMs, forgetAfterMs: 6 * TICK }),
);
/**
 * The number of sequences in a row that have the same two clients, each sequence with counters of its
 * own. A Durable Object takes longer to start than to decide a whole sequence.
 */
const SEQUENCES_OF_CLIENTS = 10;

type Clients = readonly [string, string];

export interface ModelSuiteOptions {
  /** The number of sequences of operations in a long run. */
  readonly sequences: number;
  /**
   * Steps by which the clock goes back, in milliseconds. The clock's time is at least the highest
   * time that it has shown so far, minus the largest step. Sequences with bans have no such steps.
   *
   * @default none
   */
  readonly back?: readonly number[];
  /**
   * Whether a step back may lead into the previous window. Set this to false for a store that charges first and takes
   * the charge back if it must deny. Such a store moves a counter that rolls over to the current window, even by a
   * denial.
   *
   * @default true
   */
  readonly backAcross?: boolean;
  /**
   * Whether sequences take blocks and return them. It must be false for a store that has its own
   * leases.
   *
   * @default false
   */
  readonly blocks?: boolean;
  /**
   * Whether to add sequences in which counters have bans. It must be false for a store whose keys
   * expire by its own clock.
   *
   * @default false
   */
  readonly bans?: boolean;
}

/**
 * Compares a store with a model of fixed windows, in random sequences of counters, operations and
 * clocks. fast-check reports the seed and the shortest sequence that fails.
 */
export function modelSuite(
  createStore: () => Store,
  { sequences, back = [], backAcross = true, blocks = false, bans = false }: ModelSuiteOptions,
): void {
  const run = (scenarios: fc.Arbitrary<Scenario>) => {
    const store = createStore();
    let clients: Clients = ["", ""];
    let compared = 0;
    const property = fc.asyncProperty(scenarios, (scenario) => {
      if (compared++ % SEQUENCES_OF_CLIENTS === 0) {
        clients = [crypto.randomUUID(), crypto.randomUUID()];
      }
      return compare(store, clients, scenario);
    });
    return fc.assert(property, propertyRuns(sequences));
  };
  describe("model", () => {
    it(`agrees with the store in random sequences of operations`, () =>
      run(scenario({ back, backAcross, blocks, bans: false })));

    if (bans)
      it(`agrees with the store in random sequences with bans`, () =>
        run(scenario({ back: [], backAcross, blocks, bans })));
  });
}

/** The properties of a counter that do not change in a sequence. */
interface Quota {
  readonly client: number;
  readonly limit: number;
  readonly capacity: number;
  readonly maxReserved: number;
  readonly windowMs: number;
  readonly offsetMs: number;
  /** Whether the windows are local days, of which one begins `offsetMs` after the base time. */
  readonly isCalendar: boolean;
  readonly rollsOver: boolean;
  readonly ban: Ban | undefined;
}

/** A request for quota of one counter. */
interface QuotaRequest {
  readonly cost: number;
  readonly reserve: boolean;
  readonly checkOnly: boolean;
  readonly block?: number | undefined;
}

/** Unused quota that a sequence returns to one counter. */
interface Return {
  readonly quota: number;
  /** The number of windows since the quota was charged. */
  readonly windowsAgo: number;
}

type Operation =
  | {
      readonly kind: "decide";
      readonly requests: readonly (QuotaRequest | null)[];
      readonly split: number;
      readonly returns: readonly (Return | null)[];
    }
  | { readonly kind: "adjust"; readonly costs: readonly (number | null)[] }
  | { readonly kind: "reset"; readonly at: number };

interface Scenario {
  readonly quotas: readonly Quota[];
  readonly startMs: number;
  /**
   * The clock's time is at least the highest time that it has shown so far, minus this number of
   * milliseconds.
   */
  readonly lagMs: number;
  readonly steps: readonly { readonly passMs: number; readonly operation: Operation }[];
}

function scenario({
  back,
  backAcross,
  blocks,
  bans,
}: Omit<Required<ModelSuiteOptions>, "sequences">) {
  const ticks = (max: number) => fc.nat({ max }).map((count) => count * TICK);
  const quota: fc.Arbitrary<Quota> = fc
    .record({
      client: fc.nat({ max: 1 }),
      // A few steps use up a small limit. Only a large limit is large enough for blocks.
      limit: fc.oneof(fc.nat({ max: 6 }), fc.nat({ max: 99 })),
      more: fc.nat({ max: 6 }),
      maxReserved: fc.nat({ max: 6 }),
      windowMs: fc.constantFrom(3 * TICK, 5 * TICK, HOUR),
      offsetMs: ticks(4),
      isCalendar: fc.integer({ min: 0, max: 3 }).map((one) => one === 0),
      rolls: fc.boolean(),
      ban: fc.constantFrom(undefined, ...(bans ? BANS : [])),
    })
    .map(({ more, maxReserved, rolls, ...rest }) => {
      // Only a counter that rolls over has reservations or a capacity above its limit. A limit of 0
      // does not roll over, because no window would repay a reservation.
      const rollsOver = rolls && rest.limit > 0;
      return {
        ...rest,
        rollsOver,
        capacity: rest.limit + (rollsOver ? more : 0),
        maxReserved: rollsOver ? maxReserved : 0,
      };
    });
  const quotaRequest: fc.Arbitrary<QuotaRequest> = fc.record({
    cost: fc.nat({ max: 8 }),
    reserve: fc.boolean(),
    checkOnly: fc.boolean(),
    ...(blocks && { block: fc.option(fc.nat({ max: 20 }), { nil: undefined }) }),
  });
  const giveBack: fc.Arbitrary<Return> = fc.record({
    quota: fc.integer({ min: 1, max: 12 }),
    windowsAgo: fc.nat({ max: 1 }),
  });
  const change = fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: -9, max: 9 }) },
    { weight: 1, arbitrary: fc.maxSafeInteger() },
  );
  const perCounter = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.array(fc.option(arbitrary, { freq: 3 }), { minLength: 3, maxLength: 3 });
  const operation: fc.Arbitrary<Operation> = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("decide" as const),
        requests: perCounter(quotaRequest),
        split: fc.nat({ max: 2 }),
        returns: blocks ? perCounter(giveBack) : fc.constant([]),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("adjust" as const), costs: perCounter(change) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("reset" as const), at: fc.nat({ max: 2 }) }),
    },
  );
  const stalls = { weight: 5, arbitrary: fc.constant(0) };
  const jumps = { weight: 4, arbitrary: ticks(12) };
  const goesBack = back.map((ms) => ({ weight: 1, arbitrary: fc.constant(-ms) }));
  const lagMs = Math.max(0, ...back);
  const pastTick = fc.integer(backAcross ? { min: 0, max: 999 } : { min: lagMs, max: TICK - 1 });
  return fc.record({
    quotas: fc.array(quota, { minLength: 3, maxLength: 3 }),
    startMs: fc.tuple(ticks(20), pastTick).map(([whole, ms]) => whole + ms),
    lagMs: fc.constant(lagMs),
    steps: fc.array(fc.record({ passMs: fc.oneof(stalls, jumps, ...goesBack), operation }), {
      minLength: 10,
      maxLength: 20,
    }),
  });
}

/**
 * A model of fixed windows that is as simple as possible. The store must return the same results.
 */
function model() {
  const used = new Map<string, { window: number; count: number }>();
  const bannedUntil = new Map<string, number>();
  /** The number of bans of each counter with escalating bans, and the time at which the number is forgotten. */
  const strikes = new Map<string, { count: number; until: number }>();

  function nextBanOf({ key, ban }: Counter, now: number) {
    const [firstMs = 0, ...later] = ban?.lengthsMs ?? [];
    if (!ban || later.length === 0) return firstMs;
    const { count, until } = strikes.get(key) ?? { count: 0, until: 0 };
    const remembered = now < until ? count : 0;
    const length = ban.lengthsMs[remembered] ?? (ban.lengthsMs.at(-1) as number);
    strikes.set(key, { count: remembered + 1, until: now + length + ban.forgetAfterMs });
    return length;
  }

  function stateOf(each: Counter, now: number) {
    const { key, rollsOver, limit } = each;
    const { windowMs, offsetMs } = fixedWindowsOf(each);
    const current = windowOf(each, now);
    const id = rollsOver ? key : `${key} in ${current}`;
    const { window, count } = used.get(id) ?? { window: current, count: 0 };
    const later = Math.max(0, current - window);
    return {
      id,
      window: window + later,
      count: Math.max(0, count - later * limit),
      resetMs: (window + later + 1) * windowMs + offsetMs - now,
      banMs: Math.max(0, (bannedUntil.get(key) ?? 0) - now),
    };
  }

  function set({ id, window, count }: ReturnType<typeof stateOf>, to: number) {
    if (to !== count) used.set(id, { window, count: to });
    return to;
  }

  return {
    /** @param isRead whether the store has read a counter. Otherwise the client is not banned */
    decide(group: readonly Demand[], now: number, isRead: (index: number) => boolean) {
      const states = group.map((each) => ({ each, state: stateOf(each, now) }));
      const hasRoom = ({ each, state }: (typeof states)[number]) =>
        state.count + each.cost <= each.ceiling;
      const admitted = states.every((one) => one.state.banMs === 0 && hasRoom(one));
      const tallies = states.map((one, index): Tally => {
        const { each, state } = one;
        const share = Math.floor((each.ceiling - state.count) / 8);
        const most = each.cost && Math.max(each.cost, Math.min(each.block ?? 0, share));
        const taken = admitted && !each.checkOnly ? most : 0;
        const banMs = state.banMs || (hasRoom(one) || !isRead(index) ? 0 : nextBanOf(each, now));
        if (banMs > 0) bannedUntil.set(each.key, now + banMs);
        const count = set(state, state.count + taken);
        const charged = each.block === undefined ? {} : { charged: taken };
        return { count, resetMs: state.resetMs, banMs, ...charged };
      });
      return { admitted, tallies };
    },
    adjust(each: Demand, now: number): Tally {
      const { resetMs, banMs, ...state } = stateOf(each, now);
      const to = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, state.count + each.cost));
      return { count: set({ ...state, resetMs, banMs }, to), resetMs, banMs };
    },
    giveBack({ counter: each, quota, window }: UnusedQuota, now: number) {
      const state = stateOf(each, now);
      if (window !== windowOf(each, now) || state.count < quota) return;
      set(state, state.count - quota);
    },
    reset(each: Counter, now: number) {
      used.delete(stateOf(each, now).id);
      bannedUntil.delete(each.key);
      strikes.delete(each.key);
    },
  };
}

function windowOf(each: Counter, now: number): number {
  const { windowMs, offsetMs } = fixedWindowsOf(each);
  return Math.floor((now - offsetMs) / windowMs);
}

/** A zone whose clocks have not been changed since 1986. */
const ZONE = "Asia/Kathmandu";
const ZONE_OFFSET_MS = 5.75 * HOUR;

/** Days in this zone have 24 hours, so they are windows of a fixed length. */
function fixedWindowsOf({ windowMs, offsetMs, calendar }: Counter) {
  return calendar
    ? { windowMs: 24 * HOUR, offsetMs: calendar.timeMs - ZONE_OFFSET_MS }
    : { windowMs, offsetMs };
}

async function compare(
  store: Store,
  clients: Clients,
  { quotas, startMs, lagMs, steps }: Scenario,
): Promise<void> {
  const keys = quotas.map(({ client }) => counter({ identity: clients[client] as string }).key);
  const counterAt = (index: number, request: QuotaRequest): Demand => {
    const { cost, reserve, checkOnly, block } = request;
    const quota = quotas[index] as Quota;
    const { client, capacity, maxReserved, rollsOver, ban, isCalendar, ...rest } = quota;
    const timeMs = (base + rest.offsetMs + ZONE_OFFSET_MS) % (24 * HOUR);
    return {
      ...rest,
      ...(isCalendar && {
        windowMs: 24 * HOUR,
        offsetMs: 0,
        calendar: calendarOf("day", ZONE, { timeMs }),
      }),
      key: keys[index] as string,
      identity: clients[client] as string,
      cost,
      ceiling: capacity + (reserve ? maxReserved : 0),
      ...(rollsOver && { rollsOver }),
      ...(checkOnly && { checkOnly }),
      ...(block !== undefined && { block }),
      ...(ban && { ban }),
    };
  };
  const charging = (index: number, cost: number) =>
    counterAt(index, { cost, reserve: false, checkOnly: false });
  const expected = model();
  // The time is in the future, because a store may remove rows of the past.
  const base = Math.ceil(Date.now() / HOUR) * HOUR;
  let now = base + startMs;
  let latest = now;

  async function decide(
    groups: readonly (readonly Demand[])[],
    step: string,
    unused: readonly UnusedQuota[] = [],
  ) {
    const verdict = await verdictOf(store.decide(groups, now, unused));
    for (const each of unused) expected.giveBack(each, now);
    expect(verdict.now, step).toBe(now);
    for (const [index, { admitted, tallies }] of verdict.groups.entries()) {
      const group = groups[index] as readonly Demand[];
      const all = expected.decide(group, now, (at) => tallies[at] !== undefined);
      // A denial from memory may lack the tallies of some counters, but it must have the tally of
      // at least one counter that denies.
      const expectedTallies = all.tallies.filter((_, at) => admitted || tallies[at] !== undefined);
      const returned = tallies.flatMap((tally) => {
        const { isUncertain: _, ...state } = tally ?? {};
        return tally ? [state] : [];
      });
      expect({ admitted, tallies: returned }, step).toEqual({ ...all, tallies: expectedTallies });
      const denies = tallies.some((tally, at) => {
        const { cost, ceiling } = group[at] as Demand;
        return tally !== undefined && (tally.banMs > 0 || tally.count + cost > ceiling);
      });
      expect(admitted || denies, step).toBe(true);
    }
  }

  for (const [index, { passMs, operation }] of steps.entries()) {
    now = Math.max(now + passMs, latest - lagMs);
    latest = Math.max(now, latest);
    const step = `step ${index}`;
    if (operation.kind === "decide") {
      const requested = present(operation.requests, counterAt);
      const groups = [requested.slice(0, operation.split), requested.slice(operation.split)];
      const filled = groups.filter(({ length }) => length > 0);
      const unused = present(operation.returns, (index, { quota, windowsAgo }): UnusedQuota => {
        const given = charging(index, 0);
        return { counter: given, quota, window: windowOf(given, now) - windowsAgo };
      });
      // Only counters that do not roll over can have leases. So unused quota is returned only to
      // these counters.
      const plain = unused.filter(({ counter: { rollsOver } }) => !rollsOver);
      if (filled.length > 0) await decide(filled, step, plain);
    } else if (operation.kind === "adjust") {
      const changed = present(operation.costs, charging);
      if (changed.length === 0) continue;
      const tallies = await store.adjust(changed, now);
      expect(tallies, step).toEqual(changed.map((each) => expected.adjust(each, now)));
    } else {
      const emptied = charging(operation.at, 0);
      await store.reset([emptied], now);
      expected.reset(emptied, now);
    }
  }
  await decide([quotas.map((_, index) => charging(index, 0))], "at last");
}

function present<T, R>(values: readonly (T | null)[], make: (index: number, value: T) => R): R[] {
  return values.flatMap((value, index) => (value === null ? [] : [make(index, value)]));
}

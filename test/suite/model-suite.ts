import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Counter, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";
import { counter } from "./counters.ts";

const HOUR = 3_600_000;
/** Windows begin at whole ticks, so every now and then an operation comes just after one's start. */
const TICK = 20_000;

export interface ModelSuiteOptions {
  /** Sequences of operations to try. */
  readonly runs: number;
  /**
   * Steps by which the clock goes back, in milliseconds; it never lags by more than the largest.
   * With bans about it does not go back.
   */
  readonly back?: readonly number[];
  /**
   * Whether going back may lead into the window before. A store that charges on condition and then
   * gives back has moved a counter that rolls over on to the present window, unlike the others.
   */
  readonly backAcross?: boolean;
  /** Whether blocks are asked for and given back: not of a store that does that by itself. */
  readonly blocks?: boolean;
  /** Whether there are bans: not where keys expire by a clock of the store's own. */
  readonly bans?: boolean;
}

/**
 * Holds a store to a model of fixed windows, over random counters, operations and clocks. When it
 * fails, fast-check tells the seed and the shortest sequence that shows it.
 */
export function modelSuite(
  createStore: () => Store,
  { runs, back = [], backAcross = true, blocks = false, bans = false }: ModelSuiteOptions,
): void {
  const run = (scenarios: fc.Arbitrary<Scenario>) => {
    const store = createStore();
    const property = fc.asyncProperty(scenarios, (scenario) => compare(store, scenario));
    return fc.assert(property, { seed: 20_260_101, numRuns: runs });
  };
  describe("model", () => {
    it(
      `is followed through ${runs} sequences of operations`,
      () => run(scenario({ back, backAcross, blocks, bans: false })),
      60_000,
    );

    if (bans)
      it(
        `is followed through ${runs} sequences with bans`,
        () => run(scenario({ back: [], backAcross, blocks, bans })),
        60_000,
      );
  });
}

/** What each of a run's counters has for good. */
interface Quota {
  readonly client: number;
  readonly limit: number;
  readonly capacity: number;
  readonly maxReserved: number;
  readonly windowMs: number;
  readonly offsetMs: number;
  readonly rollsOver: boolean;
  readonly banMs: number;
}

/** What is asked of one of them. */
interface Ask {
  readonly cost: number;
  readonly reserve: boolean;
  readonly checkOnly: boolean;
  readonly block?: number | undefined;
}

/** What is given back of one of them. */
interface Return {
  readonly quota: number;
  /** How many windows ago it was charged. */
  readonly windowsAgo: number;
}

type Operation =
  | {
      readonly kind: "decide";
      readonly asks: readonly (Ask | null)[];
      readonly split: number;
      readonly returns: readonly (Return | null)[];
    }
  | { readonly kind: "adjust"; readonly costs: readonly (number | null)[] }
  | { readonly kind: "reset"; readonly at: number };

interface Scenario {
  readonly quotas: readonly Quota[];
  readonly startMs: number;
  /** How far the clock may be behind the latest time that it told. */
  readonly lagMs: number;
  readonly steps: readonly { readonly passMs: number; readonly operation: Operation }[];
}

function scenario({ back, backAcross, blocks, bans }: Omit<Required<ModelSuiteOptions>, "runs">) {
  const ticks = (max: number) => fc.nat({ max }).map((count) => count * TICK);
  const quota: fc.Arbitrary<Quota> = fc
    .record({
      client: fc.nat({ max: 1 }),
      // Small ones are used up in a few steps; of large ones there are blocks to be had.
      limit: fc.oneof(fc.nat({ max: 6 }), fc.nat({ max: 99 })),
      more: fc.nat({ max: 6 }),
      maxReserved: fc.nat({ max: 6 }),
      windowMs: fc.constantFrom(3 * TICK, 5 * TICK, HOUR),
      offsetMs: ticks(4),
      rolls: fc.boolean(),
      banMs: bans ? fc.constantFrom(0, TICK, 7 * TICK) : fc.constant(0),
    })
    .map(({ more, maxReserved, rolls, ...rest }) => {
      // A counter of single windows has neither, and nothing makes up for what a limit of 0 lacks.
      const rollsOver = rolls && rest.limit > 0;
      return {
        ...rest,
        rollsOver,
        capacity: rest.limit + (rollsOver ? more : 0),
        maxReserved: rollsOver ? maxReserved : 0,
      };
    });
  const ask: fc.Arbitrary<Ask> = fc.record({
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
        asks: perCounter(ask),
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

/** Fixed windows in plain words: what the store has to come to. */
function model() {
  const used = new Map<string, { window: number; count: number }>();
  const bannedUntil = new Map<string, number>();

  function stateOf({ key, windowMs, offsetMs, rollsOver, limit }: Counter, now: number) {
    const current = Math.floor((now - offsetMs) / windowMs);
    const id = rollsOver ? key : `${key} in ${current}`;
    const { window, count } = used.get(id) ?? { window: current, count: 0 };
    const later = Math.max(0, current - window);
    return {
      id,
      window: window + later,
      count: Math.max(0, count - later * limit),
      resetMs: (current + 1) * windowMs + offsetMs - now,
      banMs: Math.max(0, (bannedUntil.get(key) ?? 0) - now),
    };
  }

  function set({ id, window, count }: ReturnType<typeof stateOf>, to: number) {
    if (to !== count) used.set(id, { window, count: to });
    return to;
  }

  return {
    decide(group: readonly Counter[], now: number) {
      const states = group.map((each) => ({ each, state: stateOf(each, now) }));
      const hasRoom = ({ each, state }: (typeof states)[number]) =>
        state.count + each.cost <= each.ceiling;
      const admitted = states.every((one) => one.state.banMs === 0 && hasRoom(one));
      const tallies = states.map((one): Tally => {
        const { each, state } = one;
        const share = Math.floor((each.ceiling - state.count) / 8);
        const most = each.cost && Math.max(each.cost, Math.min(each.block ?? 0, share));
        const taken = admitted && !each.checkOnly ? most : 0;
        const banMs = state.banMs || (hasRoom(one) ? 0 : (each.banMs ?? 0));
        if (banMs > 0) bannedUntil.set(each.key, now + banMs);
        const count = set(state, state.count + taken);
        const charged = each.block === undefined ? {} : { charged: taken };
        return { count, resetMs: state.resetMs, banMs, ...charged };
      });
      return { admitted, tallies };
    },
    adjust(each: Counter, now: number): Tally {
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
    },
  };
}

function windowOf({ windowMs, offsetMs }: Counter, now: number): number {
  return Math.floor((now - offsetMs) / windowMs);
}

async function compare(store: Store, { quotas, startMs, lagMs, steps }: Scenario): Promise<void> {
  const clients = [crypto.randomUUID(), crypto.randomUUID()];
  const keys = quotas.map(({ client }) => counter({ identity: clients[client] as string }).key);
  const counterAt = (index: number, { cost, reserve, checkOnly, block }: Ask): Counter => {
    const { client, capacity, maxReserved, rollsOver, banMs, ...rest } = quotas[index] as Quota;
    return {
      ...rest,
      key: keys[index] as string,
      identity: clients[client] as string,
      cost,
      ceiling: capacity + (reserve ? maxReserved : 0),
      ...(rollsOver && { rollsOver }),
      ...(checkOnly && { checkOnly }),
      ...(block !== undefined && { block }),
      ...(banMs > 0 && { banMs }),
    };
  };
  const charging = (index: number, cost: number) =>
    counterAt(index, { cost, reserve: false, checkOnly: false });
  const expected = model();
  // Not past, since a store may clear away what is past.
  let now = Math.ceil(Date.now() / HOUR) * HOUR + startMs;
  let latest = now;

  async function decide(
    groups: readonly (readonly Counter[])[],
    step: string,
    unused: readonly UnusedQuota[] = [],
  ) {
    const verdict = await store.decide(groups, now, unused);
    for (const each of unused) expected.giveBack(each, now);
    expect(verdict.now, step).toBe(now);
    for (const [index, { admitted, tallies }] of verdict.groups.entries()) {
      const group = groups[index] as readonly Counter[];
      const all = expected.decide(group, now);
      // A denial that is told from memory may leave out counters, but not all that have no room.
      const told = all.tallies.filter((_, at) => admitted || tallies[at] !== undefined);
      const known = tallies.filter((tally) => tally !== undefined);
      expect({ admitted, tallies: known }, step).toEqual({ ...all, tallies: told });
      const denies = tallies.some((tally, at) => {
        const { cost, ceiling } = group[at] as Counter;
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
      const asked = present(operation.asks, counterAt);
      const groups = [asked.slice(0, operation.split), asked.slice(operation.split)];
      const filled = groups.filter(({ length }) => length > 0);
      const unused = present(operation.returns, (index, { quota, windowsAgo }): UnusedQuota => {
        const given = charging(index, 0);
        return { counter: given, quota, window: windowOf(given, now) - windowsAgo };
      });
      // Only what lives for a single window is ever given back so.
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

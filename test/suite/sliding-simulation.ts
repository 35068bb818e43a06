import { expect } from "vitest";
import { type Config, type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { type Demand, windowAt, windowStart } from "../../src/engine/counter.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import type { Decision } from "../../src/limiter/decision.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import { SHARED_REACH } from "../../src/request/identity.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import type { Answer, Store } from "../../src/stores/store.ts";
import { DAY } from "./driver.ts";
import { randomOf } from "./random.ts";
import { IS_LONG, SEED } from "./runs.ts";
import { mostInAnyInterval } from "./sliding-suite.ts";
import { type VirtualIsolate, VirtualTime } from "./virtual-time.ts";

// Isolates decide requests under sliding windows, over one store. Calls are late, calls and answers get lost, isolates
// end, objects restart, clocks differ and step forward, and reserves are settled. All time is virtual. Whatever happens,
// no interval may hold more than the limit.

export const TIMEOUT_MS = 1000;
const OUTAGE_MS = 3000;
/** Noon tomorrow, so that no real alarm rings. */
const START = Math.ceil(Date.now() / DAY) * DAY + DAY / 2;

type Clock = NonNullable<Config["clock"]>;
type Random = (below: number) => number;

interface Isolate extends VirtualIsolate {
  readonly limiter: Limiter;
  readonly net: Network;
}

/** A store of counters that several isolates share. */
export interface World {
  /** The clocks that can determine the windows. */
  readonly clocks: readonly Clock[];
  /** Creates the store of an isolate, whose calls pass through the network. */
  readonly createStore: (net: Network, options: StoreOptions) => Store;
  /** Called before each seed. */
  readonly begin?: () => Promise<void>;
  /** Restarts what keeps no counts. */
  readonly restart?: () => void;
  /** Resolves when no promise can proceed without a further event. */
  readonly idle?: () => Promise<void>;
}

export interface StoreOptions {
  readonly clock: Clock;
  readonly prefix: string;
  readonly timeoutMs: number;
}

export const time = new VirtualTime<Isolate>();

/** Carries the calls of an isolate to a store. */
export class Network {
  /** Set when the isolate has ended. No further call arrives, and no answer. */
  isCut = false;
  readonly #random: Random;
  readonly #setting: Setting;

  constructor(random: Random, setting: Setting) {
    this.#random = random;
    this.#setting = setting;
  }

  /** @param fails makes the error of a call whose connection breaks */
  call<Result>(action: () => Promise<Result>, fails: () => unknown): Promise<Result> {
    const random = this.#random;
    const { lost, late, slowMs, outageAt } = this.#setting;
    const happens = (oneIn: number) => oneIn > 0 && random(oneIn) === 0;
    const isOut = outageAt <= time.now && time.now < outageAt + OUTAGE_MS;
    const isLost = isOut || happens(lost);
    const arrivesIn = 1 + random(slowMs) + (happens(late) ? random(2 * TIMEOUT_MS) : 0);
    const answersIn = 1 + random(slowMs);
    const isolate = time.current;
    return new Promise((resolve, reject) => {
      const fail = () => reject(fails());
      const failLate = () => void time.plan(30 * TIMEOUT_MS, isolate, fail);
      // Half of the lost calls fail soon, the others long after the deadline.
      if (isLost && random(2)) time.plan(random(200), isolate, fail);
      else if (isLost) failLate();
      // Half of the lost calls are carried out all the same.
      if (this.isCut || (isLost && random(2))) return failLate();
      time.plan(arrivesIn, undefined, async () => {
        const result = await action();
        const answer = () => (this.isCut ? failLate() : resolve(result));
        if (!isLost) time.plan(answersIn, isolate, answer);
      });
    });
  }
}

type Setting = ReturnType<typeof settingOf>;

/** The circumstances of a seed. Of calls, one in `lost` gets no answer, and one in `late` is late. */
function settingOf(random: Random, { clocks }: World) {
  const oneOf = <Value>(values: readonly Value[]) => values[random(values.length)] as Value;
  return {
    clock: oneOf(clocks),
    kind: oneOf(Object.keys(RULES)),
    limit: 1 + random(12),
    seconds: oneOf([1, 2, 5, 20]),
    sliding: oneOf([2, 4, 5, 10, 50]),
    places: oneOf([1, 1, 2, 8]),
    clients: 1 + random(4),
    /** The maximum difference of an isolate's clock to the true time. */
    skewMs: oneOf([0, 0, 1000]),
    /** One request in this number comes after its isolate has ended. */
    restarts: oneOf([0, 0, 40]),
    stepMs: oneOf([0, 0, 15_000]),
    maxCost: oneOf([1, 1, 5]),
    lost: oneOf([0, 0, 5, 50]),
    late: oneOf([0, 0, 10]),
    slowMs: oneOf([5, 150, 900]),
    hasOutage: oneOf([false, true]),
    outageAt: 0,
  };
}

type Rules = (limit: number, sliding: number, window: number) => readonly object[];

const RULES: Readonly<Record<string, Rules>> = {
  one: (limit, sliding, window) => [{ name: "one", limit, sliding, window: `${window}s` }],
  several: (limit, sliding, window) => {
    const limits = [
      { limit, sliding, window: `${window}s` },
      { limit: 2 * limit, sliding: 3, window: `${3 * window}s` },
      { limit: 50 * limit, window: "1h" },
    ];
    return [{ name: "one", limits }];
  },
  // In Durable Objects, another object counts the second rule.
  shared: (limit, sliding, window) => [
    { name: "one", limit, sliding, window: `${window}s` },
    { name: "all", key: "global", limit: 2 * limit, sliding, window: `${window}s` },
  ],
  reserve: (limit, sliding, window) => {
    const cost = { reserve: 1, settle: "header:x-cost" };
    return [{ name: "one", limit, sliding, window: `${window}s`, cost }];
  },
  ban: (limit, sliding, window) => [
    { name: "one", limit, sliding, window: `${window}s`, ban: "1s" },
  ],
  wait: (limit, sliding, window) => [
    { name: "one", limit, sliding, window: `${window}s`, wait: "2s" },
  ],
};

/** The quota that an admitted request has taken under one limit. */
interface Taken {
  /** The time of the charge, by the clock that determines the windows. */
  readonly chargedAt: number;
  /** The true time at which the request asked. */
  readonly askedAt: number;
  cost: number;
}

/** A limit of a client, and what has passed under it. */
interface Account {
  readonly limit: number;
  readonly lengthMs: number;
  readonly taken: Taken[];
}

/** Sends the requests of a seed. */
class Run {
  readonly setting: Setting;
  readonly accounts = new Map<string, Account>();
  readonly counts = { allowed: 0, limited: 0, undecided: 0, settled: 0 };
  readonly #world: World;
  readonly #random: Random;
  readonly #config: Config;
  readonly #prefix: string;
  readonly #isolates: Isolate[] = [];
  #requestsLeft = 250;
  #isOver = false;

  constructor(world: World, seed: number) {
    const random = randomOf(seed);
    for (let warm = 0; warm < 8; warm++) random(2);
    const setting = settingOf(random, world);
    const { kind, limit, sliding, seconds, clock } = setting;
    this.setting = setting;
    this.#world = world;
    this.#random = random;
    this.#prefix = `simulated-${seed}`;
    const rules = (RULES[kind] as Rules)(limit, sliding, seconds) as ConfigInput["rules"];
    this.#config = defineConfig({ clock, rules });
  }

  async run(): Promise<void> {
    const { restart, idle } = this.#world;
    const random = this.#random;
    const { places, stepMs, seconds, limit } = this.setting;
    time.now = START + random(20_000);
    time.stepMs = 0;
    for (let place = 0; place < places; place++) this.#isolates.push(this.#startIsolate());
    // Clients ask for about four times their limit.
    const pauseMs = Math.ceil((seconds * 500) / limit);
    let at = 0;
    for (let count = 0; count < this.#requestsLeft; at += random(pauseMs)) {
      const together = random(20) === 0 ? random(2 * limit) : 1;
      for (let each = 0; each < together; each++) time.plan(at, undefined, () => this.#send());
      count += together;
    }
    if (this.setting.hasOutage) this.setting.outageAt = time.now + random(at);
    if (restart) for (let each = 0; each < 3; each++) time.plan(random(at), undefined, restart);
    const step = () => {
      time.stepMs += random(stepMs);
    };
    if (stepMs > 0) for (let each = 0; each < 3; each++) time.plan(random(at), undefined, step);
    await time.runAll(idle);
  }

  #startIsolate(): Isolate {
    const random = this.#random;
    const { setting } = this;
    const options = { clock: setting.clock, prefix: this.#prefix, timeoutMs: TIMEOUT_MS };
    const net = new Network(random, setting);
    const store = this.#world.createStore(net, options);
    const watched: Store = {
      denialOf: (...all) => store.denialOf?.(...all),
      adjust: (...all) => store.adjust(...all),
      reset: (...all) => store.reset(...all),
      decide: (groups, ...all) => {
        const answers = store.decide(groups, ...all);
        const askedAt = time.now;
        for (const [at, group] of groups.entries()) {
          answers[at]?.then(
            (answer) => this.#take(group, answer, askedAt),
            () => {},
          );
        }
        return answers;
      },
    };
    return {
      net,
      limiter: new Limiter(options, watched),
      isAlive: true,
      offsetMs: random(2 * setting.skewMs + 1) - setting.skewMs,
    };
  }

  #send(client = `client${this.#random(this.setting.clients)}`): void {
    if (this.#requestsLeft-- <= 0) return;
    const random = this.#random;
    const { restarts, maxCost, limit } = this.setting;
    const place = random(this.#isolates.length);
    if (restarts > 0 && random(restarts) === 0) {
      (this.#isolates[place] as Isolate).net.isCut = true;
      this.#isolates[place] = this.#startIsolate();
    }
    const isolate = this.#isolates[place] as Isolate;
    const cost = 1 + random(Math.min(limit, maxCost));
    time.current = isolate;
    const applied = this.#config.rules.map((rule): AppliedRule => {
      const identity = rule.name === "all" ? "all" : client;
      return {
        rule,
        windows: rule.windows,
        identity,
        cost,
        reach: rule.name === "all" ? SHARED_REACH : 0,
      };
    });
    const { signal } = new AbortController();
    const decision = isolate.limiter.decide(applied, this.#isOver ? {} : { signal });
    void decision.then((each) => {
      this.counts[each.outcome] += 1;
      if (each.outcome === "limited") this.#retry(client, each.retryAfterMs ?? 0);
      if (each.outcome === "allowed") this.#settle(isolate, applied, each);
    });
  }

  /** Some clients come again as soon as they are told. */
  #retry(client: string, retryAfterMs: number): void {
    if (this.#random(2)) time.plan(retryAfterMs, undefined, () => this.#send(client));
  }

  /** Notes what an admitted request has taken. */
  #take(group: readonly Demand[], { admitted, now, tallies }: Answer, askedAt: number): void {
    for (const [at, counter] of admitted ? group.entries() : []) {
      const { key, cost, subWindows } = counter;
      const windows = this.#config.rules.find(({ name }) => name === key.split(":")[1])?.windows;
      const window = windows?.find(
        ({ sliding }) => sliding !== undefined && sliding === subWindows,
      );
      if (!window) continue;
      const ring = tallies[at]?.ring;
      // The store charges the latest sub-window that it knows.
      const chargedAt = ring ? Math.max(now, windowStart(counter, ring.window)) : now;
      const account = this.accounts.get(key) ?? {
        limit: window.limit,
        lengthMs: window.windowMs,
        taken: [],
      };
      this.accounts.set(key, account);
      account.taken.push({ chargedAt, askedAt, cost });
    }
  }

  /** Settles a reserve: half of the responses cost less, or nothing. What the others cost more is in no bound. */
  #settle(
    isolate: Isolate,
    [applied]: readonly AppliedRule[],
    { verdicts }: Extract<Decision, { outcome: "allowed" }>,
  ): void {
    const random = this.#random;
    const reserve = verdicts[0]?.reserve;
    if (!reserve || !applied) return;
    const cost = random(2) ? -random(reserve.cost + 1) : random(3);
    if (cost === 0) return;
    const counters = ruleCountersOf(applied, this.#prefix);
    const [counter] = counters.map(({ counter: each }) => each) as [Demand];
    const isReserve = (taken: Taken) =>
      taken.cost === reserve.cost &&
      windowAt(taken.chargedAt, counter).index === reserve.windows[0];
    const taken = this.accounts.get(counter.key)?.taken.find(isReserve);
    if (!taken) throw new Error("a reserve of no charge");
    if (cost < 0) taken.cost += cost;
    this.counts.settled += 1;
    const settle = () => isolate.limiter.settle(applied, reserve, cost).catch(() => {});
    time.plan(random(4000), isolate, settle);
  }

  /** Sends the whole quota of a client at once, after all of it is free again. @returns how many requests pass */
  async passAfterwards(): Promise<number> {
    const { seconds } = this.setting;
    Object.assign(this.setting, {
      lost: 0,
      late: 0,
      outageAt: 0,
      restarts: 0,
      maxCost: 1,
      slowMs: 5,
    });
    this.#isolates.splice(0, this.#isolates.length, this.#startIsolate());
    this.#requestsLeft = this.setting.limit + 5;
    this.#isOver = true;
    const before = this.counts.allowed;
    const send = () => {
      for (let each = this.#requestsLeft; each > 0; each--) this.#send("client0");
    };
    time.plan(10 * seconds * 1000, undefined, send);
    await time.runAll(this.#world.idle);
    return this.counts.allowed - before;
  }
}

/**
 * Runs `few` seeds, or a thousand of them in a long run. By the clock that determines the windows, no interval of a
 * window's length may hold more than the limit. By the true time at which the requests ask, this holds for intervals
 * that are shorter by the difference of two isolates' clocks, and by the time from a request to its decision.
 */
export async function expectBounds(world: World, few: number): Promise<void> {
  const wrong: string[] = [];
  let [limits, full, allowed, settled] = [0, 0, 0, 0];
  const seeds = IS_LONG ? 1000 : few;
  for (let seed = SEED; seed < SEED + seeds; seed++) {
    await world.begin?.();
    const run = new Run(world, seed);
    await run.run();
    const { setting, counts } = run;
    const label = `seed ${seed}, ${JSON.stringify(setting)}`;
    for (const { limit, lengthMs, taken } of run.accounts.values()) {
      const most = mostBy("chargedAt", taken, lengthMs);
      if (most > limit) wrong.push(`${label}: ${most} by the clock`);
      limits += 1;
      if (most === limit) full += 1;
      const shorterMs = TIMEOUT_MS + (setting.clock === "edge" ? 2 * setting.skewMs : 0);
      if (setting.stepMs > 0 || lengthMs < shorterMs) continue;
      const asked = mostBy("askedAt", taken, lengthMs - shorterMs);
      if (asked > limit) wrong.push(`${label}: ${asked} by the true time`);
    }
    allowed += counts.allowed;
    settled += counts.settled;
    const passed = await run.passAfterwards();
    if (passed !== setting.limit) wrong.push(`${label}: ${passed} pass afterwards`);
  }
  expect(wrong).toEqual([]);
  // The requests have used up many limits in an interval of their window's length.
  expect(full).toBeGreaterThan(limits / 3);
  expect(allowed).toBeGreaterThan(20 * seeds);
  expect(settled).toBeGreaterThan(0);
}

function mostBy(time: "chargedAt" | "askedAt", all: readonly Taken[], lengthMs: number): number {
  const charges = all.map((taken) => ({ at: taken[time], cost: taken.cost }));
  return mostInAnyInterval(
    charges.sort((one, other) => one.at - other.at),
    lengthMs,
  );
}

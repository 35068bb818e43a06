import type { Config } from "../../src/config/schema.ts";
import { countersOf } from "../../src/limiter/counters.ts";
import { type Answer, type Store, StoreError } from "../../src/stores/store.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { Fleet } from "../simulation/fleet.ts";
import { Network, type NetworkRecorder } from "../simulation/network.ts";
import { Random } from "../simulation/random.ts";
import { VirtualTime, WORLD } from "../simulation/virtual-time.ts";
import { certainDenialOf } from "./exact-engine.ts";
import {
  type AppliedClient,
  type ClientGroup,
  type GroupAnswer,
  groupsOf,
  isEnforcedGroup,
  keyedCountersOf,
  type ReplayedRequest,
  replayedRequestOf,
  responseCountersOf,
} from "./groups.ts";
import { createRowStore } from "./row-table.ts";
import type { LogRuleApplier } from "./rule-applier.ts";
import { type StoreUsage, UsageMeter } from "./usage.ts";

/**
 * Decides a request as the Worker's limiter does, and charges the rules that depend on the response.
 *
 * @param store the store with the isolate's leases and denial cache
 */
async function decideInIsolate(
  store: Store,
  request: LogRequest,
  applied: readonly AppliedClient[],
  prefix: string,
): Promise<ReplayedRequest> {
  const groups = groupsOf(applied);
  const certain = certainDenialOf(groups, Date.now());
  const isCalled = ([client]: ClientGroup) => !certain || client?.rule.mode === "shadow";
  const called = groups.filter(isCalled);
  const answered = store.decide(called.map((group) => countersOf(keyedCountersOf(group))));
  const all = await Promise.all(answered.map(orUndecided));
  const answers = groups.map((group): GroupAnswer | undefined =>
    isEnforcedGroup(group) && certain ? certain : all[called.indexOf(group)],
  );
  const now = all.find(Boolean)?.now ?? Date.now();
  const replayed = replayedRequestOf(request, groups, answers, now);
  if (groups.some((group, index) => isEnforcedGroup(group) && !answers[index])) {
    return { ...replayed, outcome: "undecided" };
  }
  if (replayed.outcome === "allowed") {
    for (const counters of responseCountersOf(request, groups, answers, now, prefix)) {
      // A charge that fails affects no decision on this request.
      store.adjust(counters).catch(() => {});
    }
  }
  return replayed;
}

/** A group that fails is undecided. */
async function orUndecided(answered: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answered;
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

/**
 * What a log does not state about isolates. Most requests of a client go to its home isolate, and one in
 * twenty goes to a random isolate. A home changes every ten minutes on average, and one isolate in a hundred
 * ends in a minute. bench/ assumes the same for logs.
 */
export const ASSUMED = {
  routing: { movesPerMinute: 0.1, strays: 0.05 },
  deathsPerMinute: 0.01,
  roundTripMs: 20,
  skewMs: 0,
  lossShare: 0,
} as const;

interface WorldOptions {
  readonly isolates: number;
  readonly seed: number;
  /** The deadline of decisions, in milliseconds. */
  readonly timeoutMs: number;
}

/** Isolates, a network and a store, with a clock that jumps from event to event. */
interface World {
  readonly time: VirtualTime;
  readonly fleet: Fleet;
}

/**
 * Creates isolates that never run out, with an empty store.
 *
 * @param startsAt milliseconds since the Unix epoch
 * @param usage counts the calls to the store
 */
function createWorld(
  startsAt: number,
  { isolates, seed, timeoutMs }: WorldOptions,
  usage: UsageMeter,
): World {
  const time = new VirtualTime(startsAt);
  const store = createRowStore();
  const recorder: NetworkRecorder = {
    recordCall() {},
    recordCharges(_isolate, groups, answers, unused) {
      usage.addDecision(groups, answers, unused);
    },
    recordAdjustment(counters, tallies, unused) {
      usage.addAdjustment(counters, tallies, unused);
    },
  };
  const network = new Network(time, store, recorder, new Random(seed, "network"), ASSUMED);
  const options = { ...ASSUMED, isolates, timeoutMs };
  const connect = network.connect.bind(network);
  const fleet = new Fleet(time, new Random(seed, "fleet"), options, connect);
  fleet.planDeaths(Number.POSITIVE_INFINITY);
  return { time, fleet };
}

const SECOND_MS = 1000;
/** The maximum number of requests that are kept to spread them over one second. */
const MAX_KEPT = 100_000;

/** A request, and the time at which it arrives in the simulation. */
interface Arrival {
  readonly request: LogRequest;
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly at: number;
}

/**
 * Spreads requests over the second in which they arrived, because many logs state only whole seconds. Without
 * this, all requests of a second would arrive at once. Keeps the order of the requests.
 */
class SecondSpread {
  readonly #random: Random;
  #kept: LogRequest[] = [];
  #hasWholeSeconds = true;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Returns the requests that can arrive now. The requests of the last second are kept. */
  add(requests: readonly LogRequest[]): Arrival[] {
    const arrivals: Arrival[] = [];
    for (const request of requests) {
      const [first] = this.#kept;
      this.#hasWholeSeconds &&= request.at % SECOND_MS === 0;
      const isOther = first?.at !== request.at || this.#kept.length === MAX_KEPT;
      // The arrivals of more than MAX_KEPT requests overlap, and the simulation keeps their order.
      if (isOther || !this.#hasWholeSeconds) for (const each of this.flush()) arrivals.push(each);
      if (this.#hasWholeSeconds) this.#kept.push(request);
      else arrivals.push({ request, at: request.at });
    }
    return arrivals;
  }

  /** Returns the kept requests. */
  flush(): Arrival[] {
    const offsets = this.#kept.map(() => this.#random.uniform() * SECOND_MS);
    offsets.sort((a, b) => a - b);
    const arrivals = this.#kept.map((request, index) => {
      return { request, at: request.at + (offsets[index] as number) };
    });
    this.#kept = [];
    return arrivals;
  }
}

/**
 * Decides requests as many isolates, each with its own leases and denial cache, over a simulated network and
 * with a clock that jumps from event to event.
 */
export class IsolatesEngine {
  readonly #config: Config;
  readonly #applier: LogRuleApplier;
  readonly #options: WorldOptions;
  readonly #usage: UsageMeter;
  readonly #spread: SecondSpread;
  #world: World | undefined;
  readonly #waiting = new Map<LogRequest, readonly AppliedClient[]>();
  /** The requests that have left the simulation. */
  #finished: ReplayedRequest[] = [];
  #onDecided: (replayed: ReplayedRequest) => void = () => {};
  /** The number of requests whose isolate ended while they waited for a decision. */
  lostWithIsolate = 0;

  constructor(config: Config, applier: LogRuleApplier, isolates: number, seed: number) {
    this.#config = config;
    this.#applier = applier;
    this.#options = { isolates, seed, timeoutMs: config.timeoutMs };
    this.#usage = new UsageMeter(config);
    this.#spread = new SecondSpread(new Random(seed, "seconds"));
  }

  async replay(
    requests: readonly LogRequest[],
    onDecided: (replayed: ReplayedRequest) => void,
  ): Promise<void> {
    this.#onDecided = onDecided;
    await this.#run(this.#spread.add(requests));
  }

  async finish(): Promise<StoreUsage> {
    await this.#run(this.#spread.flush());
    const { time } = this.#world ?? {};
    // After the deadline, only the requests of isolates that have ended still wait.
    await time?.run(time.now + 2 * this.#config.timeoutMs);
    this.lostWithIsolate = this.#waiting.size;
    for (const [request, applied] of this.#waiting) {
      const replayed = replayedRequestOf(request, groupsOf(applied), [], request.at);
      this.#finished.push({ ...replayed, outcome: "undecided" });
    }
    this.#handOut();
    return this.#usage.total;
  }

  /** Lets requests arrive, and runs the simulation until the last of them has arrived. */
  async #run(arrivals: readonly Arrival[]): Promise<void> {
    const [first] = arrivals;
    if (!first) return;
    this.#world ??= createWorld(first.at, this.#options, this.#usage);
    const world = this.#world;
    // Each arrival plans the next one, so that the queue stays short.
    const planFrom = (index: number): void => {
      const arrival = arrivals[index];
      if (!arrival) return;
      world.time.at(arrival.at, WORLD, () => {
        planFrom(index + 1);
        this.#send(arrival.request, world);
      });
    };
    planFrom(0);
    await world.time.run(arrivals.at(-1)?.at);
    this.#handOut();
  }

  #send(request: LogRequest, { time, fleet }: World): void {
    const isolate = fleet.isolateFor(request.ip ?? "");
    const applied = this.#applier.apply(request);
    if (!applied || applied.length === 0) {
      this.#finished.push({ request, outcome: applied ? "unmatched" : "undecided", verdicts: [] });
      return;
    }
    time.continueAs(isolate);
    this.#waiting.set(request, applied);
    decideInIsolate(isolate.store, request, applied, this.#config.prefix).then(
      (replayed) => {
        this.#waiting.delete(request);
        this.#finished.push(replayed);
      },
      (error) => time.fail(error),
    );
  }

  /** Hands out the finished requests, outside of the simulation's clock. */
  #handOut(): void {
    const finished = this.#finished;
    this.#finished = [];
    for (const replayed of finished) this.#onDecided(replayed);
  }
}

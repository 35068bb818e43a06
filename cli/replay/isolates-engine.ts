import type { Config } from "../../src/config/schema.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { WORLD } from "../simulation/actor.ts";
import { Random } from "../simulation/random.ts";
import type { AppliedClient } from "./applied-client.ts";
import { decideInIsolate, type IsolateDecision } from "./isolate-decision.ts";
import type { ReplayedRequest, StoreUsage } from "./replay-engine.ts";
import type { LogRuleApplier } from "./rule-applier.ts";
import { createWorld, type World, type WorldOptions } from "./simulated-world.ts";
import { type Arrival, SecondSpread } from "./spread-seconds.ts";
import { UsageMeter } from "./usage-meter.ts";
import { ReusedReplay } from "./verdicts.ts";

/** A request that has left the simulation. */
interface Finished {
  readonly request: LogRequest;
  readonly applied: readonly AppliedClient[];
  /** Undefined if the request is undecided, or if no rule applies to it. */
  readonly decision: IsolateDecision | undefined;
  readonly isUnmatched: boolean;
}

const NO_ANSWERS = { enforced: undefined, shadow: [], marks: [] };

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
  readonly #replayed = new ReusedReplay();
  #world: World | undefined;
  readonly #waiting = new Map<LogRequest, readonly AppliedClient[]>();
  #finished: Finished[] = [];
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
    for (const [request, applied] of this.#waiting) this.#leave(request, applied, undefined);
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
      this.#leave(request, [], undefined, applied !== undefined);
      return;
    }
    time.continueAs(isolate);
    this.#waiting.set(request, applied);
    decideInIsolate(isolate.store, request, applied, this.#config.prefix).then(
      (decision) => this.#leave(request, applied, decision),
      (error) => time.fail(error),
    );
  }

  #leave(
    request: LogRequest,
    applied: readonly AppliedClient[],
    decision: IsolateDecision | undefined,
    isUnmatched = false,
  ): void {
    this.#waiting.delete(request);
    this.#finished.push({ request, applied, decision, isUnmatched });
  }

  /** Hands out the finished requests, outside of the simulation's clock. */
  #handOut(): void {
    const finished = this.#finished;
    this.#finished = [];
    for (const { request, applied, decision, isUnmatched } of finished) {
      const { answers, now } = decision ?? { answers: NO_ANSWERS, now: request.at };
      this.#replayed.start(request);
      if (!isUnmatched) this.#replayed.finish(applied, answers, now);
      if (!isUnmatched && !decision) this.#replayed.outcome = "undecided";
      this.#onDecided(this.#replayed);
    }
  }
}

import type { Decision, Limited, ShadowResults } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { StoreCall, StoreMeter } from "../stores/calls.ts";
import { LimitedClients } from "./limited-clients.ts";
import { type MinuteRecord, MinuteRecords } from "./minute-record.ts";
import { outcomeOf } from "./outcome.ts";
import { raisePeak } from "./peak.ts";
import { LATENCY_BOUNDS_MS, type LimitedClient, type MinuteSums } from "./sums.ts";

export interface RecorderOptions {
  /** Lets a task run to its end although no response waits for it. */
  readonly background: (task: Promise<unknown>) => void;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
}

/** Sums that an isolate has taken out of its recorder to hand them over. */
export interface RecordedSums {
  readonly minutes: readonly MinuteSums[];
  readonly clients: readonly LimitedClient[];
}

/**
 * Adds up the sums of this isolate, until they are handed over. No method throws.
 *
 * A decision takes time in proportion to the number of its rules. Memory is bounded: the sums of each
 * rule of the configuration for a few minutes, and the clients limited most often.
 */
export class Recorder implements StoreMeter {
  /** Whether the breaker of the store is open, so that this isolate does not call the store. */
  breakerOpen = false;
  /**
   * Called after sums were added that may belong to no request in progress, such as the duration of
   * a call in the background.
   */
  onLateSums: (now: number) => void = () => {};
  readonly #background: RecorderOptions["background"];
  readonly #clock: () => number;
  readonly #minutes = new MinuteRecords();
  readonly #clients = new LimitedClients();

  constructor({ background, clock = Date.now }: RecorderOptions) {
    this.#background = background;
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#minutes.isEmpty;
  }

  /** Returns all sums, and begins to add up anew. */
  take(): RecordedSums {
    return { minutes: this.#minutes.take(), clients: this.#clients.take() };
  }

  /** Counts a request to which no rule applied. */
  recordUnmatched(now = this.#clock()): void {
    const { requests } = this.#minutes.at(now);
    requests.requests += 1;
    requests.unmatched += 1;
  }

  /** Counts a request that got 400 or 414, because its address could not be read. */
  recordRefused(now = this.#clock()): void {
    const { requests } = this.#minutes.at(now);
    requests.requests += 1;
    requests.refused += 1;
  }

  /** Counts a decided request, and each rule that applied to it. */
  record(appliedRules: readonly AppliedRule[], decision: Decision, now = this.#clock()): void {
    const record = this.#minutes.at(now);
    const { requests } = record;
    requests.requests += 1;
    if (decision.outcome === "undecided") {
      if (decision.open) requests.undecidedPassed += 1;
      else requests.undecidedDenied += 1;
      for (const applied of appliedRules) this.#recordUndecided(applied, record);
      return;
    }
    requests[decision.outcome] += 1;
    if (decision.fromMemory) requests.fromMemory += 1;
    if (decision.storeFailure) requests.countedLocally += 1;
    let nextQuota = 0;
    for (const applied of appliedRules) {
      if (decision.storeFailure && !isCountedLocally(applied)) {
        this.#recordUndecided(applied, record);
      } else if (applied.later) {
        this.#recordLater(applied, applied.later, false);
      } else {
        const sums = record.ruleSums(applied.rule.name);
        sums.requests += 1;
        nextQuota = raisePeak(sums, applied, decision.quotas, nextQuota);
        if (decision.outcome === "allowed") {
          const outcome = outcomeOf(applied, decision);
          if (outcome) sums[outcome] += 1;
        }
      }
    }
    if (decision.outcome === "limited") this.#recordDenial(decision, record, now);
    if (decision.shadow.length > 0) this.#recordShadow(decision.shadow, record, now);
  }

  /** Counts a call to the store. */
  recordStoreCall({ durationMs, failed, commands }: StoreCall): void {
    const now = this.#clock();
    const { store } = this.#minutes.at(now);
    store.calls += 1;
    if (failed) store.failures += 1;
    store.commands += commands;
    store.latencyMs += durationMs;
    const bucket = LATENCY_BOUNDS_MS.findIndex((bound) => durationMs <= bound);
    const index = bucket < 0 ? LATENCY_BOUNDS_MS.length : bucket;
    store.latency[index] = (store.latency[index] ?? 0) + 1;
    this.onLateSums(now);
  }

  #recordDenial({ exceeded }: Limited, record: MinuteRecord, now: number): void {
    const { rule, identity } = exceeded;
    const sums = record.ruleSums(rule.name);
    sums.limited += 1;
    sums.peak = 1;
    this.#clients.add(rule.name, identity, false, now);
  }

  #recordUndecided(applied: AppliedRule, record: MinuteRecord): void {
    if (applied.later) {
      this.#recordLater(applied, applied.later, true);
      return;
    }
    const sums = record.ruleSums(applied.rule.name);
    sums.requests += 1;
    sums.undecided += 1;
  }

  /**
   * Counts a request for a shadow rule whose client is identified later. If the request turns out to
   * be exempt, the rule does not count it.
   */
  #recordLater(
    { rule }: AppliedRule,
    later: Promise<readonly AppliedRule[]>,
    isUndecided: boolean,
  ): void {
    const count = (isApplied: boolean) => {
      if (!isApplied) return;
      const now = this.#clock();
      const sums = this.#minutes.at(now).ruleSums(rule.name);
      sums.requests += 1;
      if (isUndecided) sums.undecided += 1;
      this.onLateSums(now);
    };
    this.#background(
      later.then(
        ({ length }) => count(length > 0),
        () => count(true),
      ),
    );
  }

  #recordShadow(results: ShadowResults, record: MinuteRecord, now: number): void {
    let last: string | undefined;
    for (const result of results) {
      if (result instanceof Promise) {
        this.#background(result.then((late) => this.#recordLateShadow(late)));
      } else if ("cause" in result) {
        record.ruleSums(result.policy).undecided += 1;
      } else if (result.rule.name !== last) {
        // A rule has a result for each exceeded window. They follow one another.
        last = result.rule.name;
        const sums = record.ruleSums(last);
        sums.shadowLimited += 1;
        sums.peak = 1;
        this.#clients.add(last, result.identity, true, now);
      }
    }
  }

  #recordLateShadow(results: ShadowResults): void {
    if (results.length === 0) return;
    const now = this.#clock();
    this.#recordShadow(results, this.#minutes.at(now), now);
    this.onLateSums(now);
  }
}

/** Whether this isolate decides the rule alone while the store fails. */
function isCountedLocally({ rule }: AppliedRule): boolean {
  return rule.mode === "enforce" && rule.onError === "local";
}

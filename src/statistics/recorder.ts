import {
  type Allowed,
  type Decision,
  isViolated,
  type Limited,
  type Quota,
  type RuleVerdict,
} from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { StoreCall, StoreMeter } from "../stores/calls.ts";
import { ClientSketch } from "./client-sketch.ts";
import { DenialList, type Denials } from "./denials.ts";
import {
  LATENCY_BOUNDS_MS,
  type LimitedClient,
  MINUTE_MS,
  MinuteRecord,
  type MinuteSums,
  raiseOpenPeak,
} from "./sums.ts";

/**
 * The maximum number of minutes that an isolate keeps. If the sums cannot be uploaded for longer, the oldest minutes
 * are added to a later minute, so that the totals stay correct.
 */
export const MAX_MINUTES = 5;

/** The sums of the last minutes, at most {@link MAX_MINUTES} of them. */
export class MinuteRecords {
  #records: MinuteRecord[] = [];

  get isEmpty(): boolean {
    return this.#records.length === 0;
  }

  /** Returns the sums of the minute that contains a time. */
  at(now: number): MinuteRecord {
    const minute = Math.floor(now / MINUTE_MS);
    const latest = this.#records.at(-1);
    return latest?.minute === minute ? latest : this.#findOrAdd(minute);
  }

  /** Returns all sums, and starts again from 0. */
  take(): MinuteSums[] {
    const minutes = this.#records.map((record) => record.toSums());
    this.#records = [];
    return minutes;
  }

  #findOrAdd(minute: number): MinuteRecord {
    // The clock may have gone back.
    const known = this.#records.find((record) => record.minute === minute);
    if (known) return known;
    const record = new MinuteRecord(minute);
    this.#records.push(record);
    if (this.#records.length > MAX_MINUTES) {
      const oldest = this.#records.shift();
      if (oldest) this.#records[0]?.add(oldest.toSums());
    }
    return record;
  }
}

/** The maximum number of clients that are uploaded at once. */
export const MAX_LIMITED_CLIENTS = 64;

/** The maximum number of entries about denials that are uploaded at once. */
export const MAX_DENIALS = 200;

/**
 * Returns the used part of a limit, from 0 to 1. Quota that rolled over comes on top of the limit. While any of this
 * quota is left, no part of the limit is used.
 *
 * @param shards the rule's number of shards. `remaining` is the quota left in one of them
 */
function usedPart({ violated, limit, remaining }: Quota, shards: number): number {
  if (violated) return 1;
  const used = limit - remaining * shards;
  return used > 0 ? used / limit : 0;
}

interface RecorderOptions {
  /** Keeps the Worker alive until a task has ended. */
  readonly background: (task: Promise<unknown>) => void;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
}

/** The sums that an isolate has taken out of its recorder. */
interface RecordedSums {
  readonly minutes: readonly MinuteSums[];
  readonly clients: readonly LimitedClient[];
  readonly denials: readonly Denials[];
}

/**
 * Adds up the sums of this isolate until they are uploaded. No method throws.
 *
 * Memory is bounded: the recorder keeps the sums of each configured rule for a few minutes, the most limited clients,
 * and a list of denials.
 */
export class Recorder implements StoreMeter {
  /** Whether the breaker of the store is open, so that this isolate does not call the store. */
  breakerOpen = false;
  /** Called after sums were added outside of a request, such as the duration of a call in the background. */
  onLateSums: (now: number) => void = () => {};
  readonly #background: RecorderOptions["background"];
  readonly #clock: () => number;
  readonly #minutes = new MinuteRecords();
  readonly #clients = new ClientSketch([], MAX_LIMITED_CLIENTS);
  readonly #denials = new DenialList(MAX_DENIALS);

  constructor({ background, clock = Date.now }: RecorderOptions) {
    this.#background = background;
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#minutes.isEmpty;
  }

  /** Returns all sums, and starts again from 0. */
  take(): RecordedSums {
    const [clients, denials] = [this.#clients.take(), this.#denials.take()];
    return { minutes: this.#minutes.take(), clients, denials };
  }

  /** Counts a request to which no rule applied. */
  recordUnmatched(now = this.#clock()): void {
    const { requests } = this.#minutes.at(now);
    requests.requests += 1;
    requests.unmatched += 1;
  }

  /** Counts a request that got 400 or 414, because its URL could not be read. */
  recordRefused(now = this.#clock()): void {
    const { requests } = this.#minutes.at(now);
    requests.requests += 1;
    requests.refused += 1;
  }

  /**
   * Counts a decided request, and each rule that applied to it.
   *
   * @param colo the data centre that received the request; undefined for a call of a program
   */
  record(
    appliedRules: readonly AppliedRule[],
    decision: Decision,
    now = this.#clock(),
    colo?: string,
  ): void {
    const record = this.#minutes.at(now);
    const { requests } = record;
    requests.requests += 1;
    if (decision.waitedMs !== undefined) {
      requests.waited += 1;
      requests.waitedMs += decision.waitedMs;
    }
    if (decision.outcome === "undecided") {
      if (decision.open) requests.undecidedPassed += 1;
      else requests.undecidedDenied += 1;
      for (const applied of appliedRules) this.#recordUndecided(applied, record);
      return;
    }
    requests[decision.outcome] += 1;
    if (decision.fromMemory) requests.fromMemory += 1;
    if (decision.storeFailure) requests.countedLocally += 1;
    for (const applied of appliedRules) {
      if (decision.storeFailure && !isCountedLocally(applied)) {
        this.#recordUndecided(applied, record);
      } else if (applied.pendingRules) {
        this.#recordLater(applied, applied.pendingRules, false);
      } else {
        record.ruleSums(applied.rule.name).requests += 1;
      }
    }
    for (const verdict of decision.verdicts) {
      this.#recordVerdict(verdict, decision, record, now, colo);
    }
    if (decision.outcome === "allowed" && decision.ahead) {
      requests.ahead += 1;
      this.#background(decision.ahead.verdicts.then((late) => this.#recordOver(late, colo)));
    }
    if (decision.outcome === "limited") this.#recordDenial(decision, record, now, colo);
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

  #recordOver(verdicts: readonly RuleVerdict[], colo?: string): void {
    const denied = verdicts.filter(({ says }) => says === "denied");
    if (denied.length === 0) return;
    const now = this.#clock();
    this.#minutes.at(now).requests.over += 1;
    for (const { appliedRule, quotas } of denied) {
      const exceeded = quotas.find(isViolated);
      if (exceeded) this.#addDenied("ahead", appliedRule, exceeded, now, colo);
    }
    this.onLateSums(now);
  }

  #recordDenial(denial: Limited, record: MinuteRecord, now: number, colo?: string): void {
    const { deniedBy, quotas, retryAfterMs, storeFailure } = denial;
    const { name } = deniedBy.appliedRule.rule;
    const sums = record.ruleSums(name);
    sums.limited += 1;
    sums.peak = 1;
    const policy = quotas.find(isViolated)?.policy ?? name;
    const mode = storeFailure ? "local" : "enforce";
    this.#addDenied(mode, deniedBy.appliedRule, { policy, retryAfterMs }, now, colo);
  }

  #addDenied(
    mode: Denials["mode"],
    { rule: { name: rule }, identity: client }: AppliedRule,
    { policy, retryAfterMs }: Pick<Denials, "policy" | "retryAfterMs">,
    now: number,
    colo?: string,
  ): void {
    const shadow = mode === "shadow";
    const of = { rule, client, count: 1, lastAt: now };
    if (mode !== "ahead") this.#clients.add({ ...of, error: 0, shadow });
    this.#denials.add({ ...of, policy, mode, firstAt: now, retryAfterMs, colo });
  }

  #recordUndecided(applied: AppliedRule, record: MinuteRecord): void {
    if (applied.pendingRules) {
      this.#recordLater(applied, applied.pendingRules, true);
      return;
    }
    const sums = record.ruleSums(applied.rule.name);
    sums.requests += 1;
    sums.undecided += 1;
  }

  /**
   * Counts a request for a shadow rule whose client is identified later. The rule does not count an exempt request.
   */
  #recordLater(
    { rule }: AppliedRule,
    pendingRules: Promise<readonly AppliedRule[]>,
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
      pendingRules.then(
        ({ length }) => count(length > 0),
        () => count(true),
      ),
    );
  }

  #recordVerdict(
    { appliedRule, says, quotas, pendingVerdict }: RuleVerdict,
    decision: Allowed | Limited | undefined,
    record: MinuteRecord,
    now: number,
    colo?: string,
  ): void {
    const { rule, blockedUntil } = appliedRule;
    if (pendingVerdict) {
      if (rule.mode === "enforce") record.ruleSums(rule.name).ahead += 1;
      this.#background(pendingVerdict.then((late) => this.#recordLate(late, decision, colo)));
      return;
    }
    const sums = record.ruleSums(rule.name);
    // The quotas of a blocked client and of this isolate's own counters do not show the number of open requests.
    if (blockedUntil === undefined && !decision?.storeFailure) {
      for (const { concurrent, limit, remaining } of quotas) {
        if (concurrent) raiseOpenPeak(sums, limit - remaining);
      }
    }
    if (says === "undecided") sums.undecided += 1;
    else if (rule.mode !== "shadow") {
      // The quotas of this isolate's own counters are only shares of the limits.
      if (!decision?.storeFailure) {
        for (const quota of quotas) sums.peak = Math.max(sums.peak, usedPart(quota, rule.shards));
      }
      const over = rule.mode === "mark" ? "marked" : "over";
      if (decision?.outcome === "allowed") sums[says === "denied" ? over : "allowed"] += 1;
    } else if (says === "denied") {
      sums.shadowLimited += 1;
      sums.peak = 1;
      const exceeded = quotas.find(isViolated) ?? { policy: rule.name };
      this.#addDenied("shadow", appliedRule, exceeded, now, colo);
    }
  }

  /** Counts the verdicts of rules for which the request has not waited. */
  #recordLate(
    verdicts: readonly RuleVerdict[],
    decision: Allowed | Limited | undefined,
    colo?: string,
  ): void {
    const isQuiet = ({ appliedRule: { rule }, says, quotas }: RuleVerdict) =>
      rule.mode === "shadow" && says === "admitted" && !quotas.some(({ concurrent }) => concurrent);
    if (verdicts.every(isQuiet)) return;
    const now = this.#clock();
    const record = this.#minutes.at(now);
    for (const verdict of verdicts) this.#recordVerdict(verdict, decision, record, now, colo);
    this.onLateSums(now);
  }
}

/** Whether this isolate decides the rule alone while the store fails. */
function isCountedLocally({ rule }: AppliedRule): boolean {
  return rule.mode === "enforce" && rule.onError === "local";
}

import type { Config } from "../config/schema.ts";
import { countsUntil } from "../engine/counter.ts";
import type { Answer } from "../stores/store.ts";
import type { RuleCounter } from "./counters.ts";

/** The maximum number of clients that an isolate remembers, each under one rule. They take about 1 MB. */
export const MAX_MARKS = 4096;

/** By how much an isolate's clock may be ahead of the store's, in milliseconds, if the store's determines the windows. */
const MAX_SKEW_MS = 30_000;

/** No request of a client passes ahead under a rule before this time, in milliseconds since the Unix epoch. */
interface Mark {
  until: number;
}

/**
 * Which requests may pass ahead: before the store has decided, under rules with `async`.
 *
 * A request that passes ahead marks its client under each rule until the client's last window ends. Only the answer
 * that the store has charged this request removes the mark. So in a window, at most one request of a client passes
 * ahead without a charge, whatever becomes of it: a denial, a lost answer, or an invocation that is killed.
 */
export class AheadGate {
  readonly #time: () => number;
  readonly #graceMs: number;
  readonly #maxMarks: number;
  readonly #marks = new Map<string, Mark>();
  /** The latest time seen. After a step back of the clock, it is unknown which windows have ended. */
  #latest = Number.NEGATIVE_INFINITY;
  /** Until this time, no mark ends. */
  #nextEndAt = Number.NEGATIVE_INFINITY;
  #isAnswering = true;

  /** @param time returns this isolate's time */
  constructor({ clock }: Pick<Config, "clock">, time: () => number, maxMarks = MAX_MARKS) {
    this.#time = time;
    this.#graceMs = clock === "edge" ? 0 : MAX_SKEW_MS;
    this.#maxMarks = maxMarks;
  }

  /**
   * Whether a request may pass ahead under all of these rules.
   *
   * @param rules the counters of each rule
   */
  mayPass(rules: readonly (readonly RuleCounter[])[]): boolean {
    const now = this.#time();
    if (now < this.#latest || !this.#isAnswering) return false;
    this.#latest = now;
    if (rules.some((each) => (this.#marks.get(keyOf(each))?.until ?? now) > now)) return false;
    if (this.#marks.size + rules.length > this.#maxMarks) this.#removeEnded(now);
    return this.#marks.size + rules.length <= this.#maxMarks;
  }

  /** Notes that a request passes ahead under a rule. */
  pass(ruleCounters: readonly RuleCounter[], answered: Promise<Answer>): void {
    const now = this.#time();
    const key = keyOf(ruleCounters);
    const endsAt = Math.max(...ruleCounters.map(({ counter }) => countsUntil(now, counter)));
    const mark = { until: endsAt + this.#graceMs };
    this.#marks.set(key, mark);
    this.#nextEndAt = Math.min(this.#nextEndAt, mark.until);
    answered.then(
      (answer) => {
        this.observe(answer);
        if (!answer.admitted) {
          mark.until = Math.max(endsAt, this.#endOf(answer) ?? mark.until);
          this.#nextEndAt = Math.min(this.#nextEndAt, mark.until);
        } else if (this.#marks.get(key) === mark) {
          // After the end of its window, another request may have replaced the mark.
          this.#marks.delete(key);
        }
      },
      () => this.fail(),
    );
  }

  /** Returns when the last window of a denial ends; undefined if the denial does not say so. */
  #endOf({ tallies }: Answer): number | undefined {
    if (!tallies.every((tally) => tally)) return undefined;
    return this.#time() + Math.max(...tallies.map((tally) => tally?.resetMs ?? 0));
  }

  /** Notes an answer to any request, after which requests may pass ahead again. */
  observe({ fromMemory }: Answer): void {
    if (!fromMemory) this.#isAnswering = true;
  }

  /** Notes that the store has not decided a request. No request passes ahead until the store has answered again. */
  fail(): void {
    this.#isAnswering = false;
  }

  #removeEnded(now: number): void {
    if (now < this.#nextEndAt) return;
    this.#nextEndAt = Number.POSITIVE_INFINITY;
    for (const [key, { until }] of this.#marks) {
      if (until <= now) this.#marks.delete(key);
      else this.#nextEndAt = Math.min(this.#nextEndAt, until);
    }
  }
}

/** All shards of a client have one key. */
function keyOf([first]: readonly RuleCounter[]): string {
  const { rule, identity } = (first as RuleCounter).appliedRule;
  return `${rule.name}:${identity}`;
}

import {
  addRequests,
  addRuleSums,
  addStoreSums,
  noRequests,
  noRuleSums,
  noStoreSums,
} from "../statistics/add-sums.ts";
import {
  type LimitedClient,
  MINUTE_MS,
  type MinuteSums,
  type RuleSums,
} from "../statistics/sums.ts";
import { ClientSketch } from "./client-sketch.ts";
import { MAX_RULES } from "./valid-hand-over.ts";

/** Sums of minutes longer ago than this are added to the oldest accepted minute. */
export const MAX_AGE_MS = 24 * 60 * MINUTE_MS;
/** Sums of minutes further ahead than this, by a fast clock, are added to the last accepted minute. */
const MAX_AHEAD_MS = MINUTE_MS;

interface Minute {
  readonly requests: MinuteSums["requests"];
  readonly store: MinuteSums["store"];
  /** By name. Unlike an object, a map also keeps a rule with the name `__proto__`. */
  readonly rules: Map<string, RuleSums>;
}

/** Sums that an object has received and has not yet stored or passed on. */
export class GatheredSums {
  readonly #minutes = new Map<number, Minute>();
  readonly #clients = new ClientSketch();

  get isEmpty(): boolean {
    return this.#minutes.size === 0 && this.#clients.isEmpty;
  }

  add(minutes: readonly MinuteSums[], clients: readonly LimitedClient[], now: number): void {
    const first = Math.floor((now - MAX_AGE_MS) / MINUTE_MS);
    const last = Math.floor((now + MAX_AHEAD_MS) / MINUTE_MS);
    for (const each of minutes) {
      this.#addMinute(Math.min(Math.max(each.minute, first), last), each);
    }
    for (const each of clients) {
      const lastAt = Math.min(Math.max(each.lastAt, now - MAX_AGE_MS), now + MAX_AHEAD_MS);
      this.#clients.add({ ...each, lastAt });
    }
  }

  /** Returns all sums, and removes them from this object. */
  take(): { readonly minutes: MinuteSums[]; readonly clients: readonly LimitedClient[] } {
    const minutes = [...this.#minutes].map(([minute, { rules, ...sums }]) => ({
      minute,
      ...sums,
      rules: Object.fromEntries(rules),
    }));
    this.#minutes.clear();
    return { minutes, clients: this.#clients.take() };
  }

  #addMinute(minute: number, { requests, store, rules }: MinuteSums): void {
    let sums = this.#minutes.get(minute);
    if (!sums) {
      sums = { requests: noRequests(), store: noStoreSums(), rules: new Map() };
      this.#minutes.set(minute, sums);
    }
    addRequests(sums.requests, requests);
    addStoreSums(sums.store, store);
    for (const [name, ruleSums] of Object.entries(rules)) {
      let sum = sums.rules.get(name);
      if (!sum) {
        if (sums.rules.size >= MAX_RULES) continue;
        sum = noRuleSums();
        sums.rules.set(name, sum);
      }
      addRuleSums(sum, ruleSums);
    }
  }
}

import { banKey } from "../engine/bans.ts";
import {
  type Demand,
  MAX_COUNT,
  type Row,
  storedKey,
  windowEndingNear,
} from "../engine/counter.ts";
import { decideGroup } from "../engine/fixed-window.ts";
import type { CounterTally } from "../limiter/clients.ts";
import { type Answer, type Group, isDependent, type Store, skipped } from "../stores/store.ts";

/**
 * A store that decides with the counts that another store has, and only notes what it would store. So an
 * explanation has the decision, the counts and the bans of a real request, but takes no quota.
 */
export class ImaginedStore implements Store {
  /** The time of the other store, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** The rows that the decision would store, by their keys. */
  readonly writes = new Map<string, Row>();
  /** The counters that were decided, without their alternatives. */
  readonly decided: Demand[] = [];
  readonly #rows = new Map<string, Row>();

  /**
   * @param states the states of all counters that may be decided
   * @param now this isolate's time
   */
  constructor(states: readonly CounterTally[], now: number) {
    this.now = storeTimeOf(states, now);
    for (const { counter, tally } of states) {
      const { count, banMs } = tally;
      const window = windowEndingNear(this.now + tally.resetMs, counter).index;
      const key = storedKey(counter, this.now);
      if (count > 0) this.#rows.set(key, { window, count, expiresAt: MAX_COUNT });
      if (banMs > 0) {
        this.#rows.set(banKey(counter), { window: 0, count: 1, expiresAt: this.now + banMs });
      }
    }
  }

  decide(groups: readonly Group[], now = this.now): Promise<Answer>[] {
    let first: Answer | undefined;
    return groups.map(async (group, index) => {
      this.decided.push(...group);
      if (first?.admitted === false && isDependent(groups, index)) return skipped(now);
      const { verdict, writes } = decideGroup(group, now, (key) => this.#rows.get(key));
      for (const [key, row] of writes) if (row) this.writes.set(key, row);
      const answer = { ...verdict, now };
      first ??= answer;
      return answer;
    });
  }

  adjust(): Promise<never> {
    throw new TypeError("An imagined store only decides.");
  }

  reset(): Promise<never> {
    throw new TypeError("An imagined store only decides.");
  }
}

/**
 * Returns the time of the store that has answered. Both clocks differ by less than half of the longest
 * window, so the end of this window and the time until then show it.
 */
function storeTimeOf(states: readonly CounterTally[], now: number): number {
  let longest: CounterTally | undefined;
  for (const each of states) {
    if (!longest || each.counter.windowMs > longest.counter.windowMs) longest = each;
  }
  if (!longest) return now;
  const { counter, tally } = longest;
  return windowEndingNear(now + tally.resetMs, counter).endsAt - tally.resetMs;
}

import {
  type Adjustment,
  type Counter,
  counterId,
  type Demand,
  type Removal,
  type Tally,
  type UnusedQuota,
} from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";
import { countedIn, countsSubWindows, ringAt, withCharge } from "../../engine/sub-windows.ts";
import { type Answer, type Group, mayBeCarriedOut, type Store } from "../store.ts";
import { type Frequency, FrequencyMap } from "./frequency-map.ts";
import {
  type CounterSnapshot,
  isValidAt,
  type StoreCall,
  snapshotOf,
  tallyOf,
} from "./lease-book.ts";

/**
 * A cached denial is valid for at most this time, in milliseconds. So a refund or a reset by
 * another isolate takes effect in this isolate after at most this time.
 */
export const MAX_AGE_MS = 10_000;

/**
 * The snapshots of a denied group's counters; undefined for counters that are not cached. A single exhausted counter
 * is enough to deny the group. If all counters had to be cached, a client could vary the key of a second counter, for
 * example the path, and so cause a call with each denied request.
 */
type Denial = readonly (CounterSnapshot | undefined)[];

/** The state of a counter in a tally. It is `available` if the counter has quota for its cost. */
type CounterStatus = "available" | "exhausted" | "banned";

interface CachedCounter extends Frequency {
  snapshot: CounterSnapshot;
  /** When the answer arrived, by this isolate's clock; the caller's time if the caller passed it. */
  receivedAt: number;
}

/** The snapshots of counters whose groups were denied, at most `max` of them. */
class DenialCache {
  readonly #counters: FrequencyMap<CachedCounter>;
  #latest = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#counters = new FrequencyMap(max);
  }

  /**
   * Notes this isolate's time. Clears the cache if the clock has gone back, because it is then unknown which
   * snapshots are valid.
   */
  observe(now: number): void {
    if (now < this.#latest) this.#counters.clear();
    this.#latest = now;
  }

  /**
   * Returns the snapshots of a group's counters if they show that the group must be denied.
   *
   * @param isStoreAway whether the store has failed. A group is then denied even if only the store could start its
   * ban
   */
  denialOf(group: readonly Demand[], now: number, isStoreAway = false): Denial | undefined {
    if (this.#counters.size === 0 || group.every(isRead)) return undefined;
    let deniedBy: Demand[] | undefined;
    const denial: (CounterSnapshot | undefined)[] = [];
    for (const counter of group) {
      const snapshot = this.#snapshotOf(counter, now);
      denial.push(snapshot);
      if (!snapshot) continue;
      const status = statusOf(counter, tallyAt(counter, snapshot, now + snapshot.clockOffsetMs));
      if (status === "available") continue;
      // Only the store can start the ban of a client that exceeds the limit.
      const startsBan = counter.ban && !counter.neverBans && status !== "banned";
      if (startsBan && !isStoreAway) return undefined;
      deniedBy ??= [];
      deniedBy.push(counter);
    }
    if (!deniedBy) return undefined;
    for (const id of deniedBy.map(counterId)) this.#counters.use(id, now);
    return denial;
  }

  /**
   * Updates cached counters by the store's answer. Adds all counters of a denied group, even counters with quota
   * left, so that denials from memory have all counts.
   */
  record(group: readonly Demand[], answer: Answer, call: StoreCall): void {
    if (!call.isGiven && call.answeredAt < call.sentAt) return;
    const isWorthAdding = isDenied(group, answer);
    for (const [index, counter] of group.entries()) {
      const tally = answer.tallies[index];
      if (!tally || tally.isUncertain) continue;
      this.#put(counter, tally, call, isWorthAdding);
    }
  }

  remove(counters: readonly Counter[]): void {
    for (const id of counters.map(counterId)) this.#counters.delete(id);
  }

  /** @param isWorthAdding whether to add the counter if it is missing */
  #put(counter: Demand, tally: Tally, call: StoreCall, isWorthAdding: boolean): void {
    const id = counterId(counter);
    const entry = this.#counters.peek(id);
    if (!entry && !isWorthAdding) return;
    const snapshot = snapshotOf(counter, tally, call);
    const receivedAt = call.isGiven ? call.decidedAt : call.answeredAt;
    if (entry) {
      entry.snapshot = snapshot;
      entry.receivedAt = receivedAt;
    } else {
      const added = { snapshot, receivedAt, recentUses: 1, lastUsedAt: receivedAt };
      this.#counters.add(id, added);
    }
  }

  #snapshotOf(counter: Demand, now: number): CounterSnapshot | undefined {
    const id = counterId(counter);
    const entry = this.#counters.peek(id);
    // The bans of rules in shadow mode are stored separately.
    if (!entry || entry.snapshot.shadow !== counter.shadow) return undefined;
    const { snapshot, receivedAt } = entry;
    const isRecent = receivedAt <= now && now < receivedAt + MAX_AGE_MS;
    if (isRecent && isValidAt(snapshot, now)) return snapshot;
    this.#counters.delete(id);
    return undefined;
  }
}

/** Whether a demand only reads the count. The cache must not answer it, because its count may be old. */
function isRead({ cost, checkOnly }: Demand): boolean {
  return cost === 0 && checkOnly === true;
}

/** Whether any counter denies its group. Ignores uncertain counts. */
function isDenied(group: readonly Demand[], { admitted, tallies }: Answer): boolean {
  if (admitted) return false;
  return group.some((counter, index) => {
    const tally = tallies[index];
    return tally && !tally.isUncertain && statusOf(counter, tally) !== "available";
  });
}

function statusOf(counter: Demand, { count, banMs }: Tally): CounterStatus {
  if (banMs > 0) return "banned";
  return hasQuota(counter, count) ? "available" : "exhausted";
}

/** The maximum number of cached counters. That many take about 2 MB, and about 4 MB with 60 sub-windows each. */
const MAX_COUNTERS = 4096;

/**
 * Wraps a store so that requests are denied from memory while a counter is certainly exhausted.
 *
 * The cache contains counts, not denials. So the store still decides requests whose cost fits into the quota left,
 * and all requests after the limit was raised. Within a window, only refunds, returns and resets lower a count. After
 * such a change, a cached count may be too high, but it is used for at most `MAX_AGE_MS`.
 */
export function withDenialCache(store: Store, maxCounters = MAX_COUNTERS): Store {
  return new CachingStore(store, maxCounters);
}

class CachingStore implements Store {
  readonly #store: Store;
  readonly #cache: DenialCache;

  constructor(store: Store, maxCounters: number) {
    this.#store = store;
    this.#cache = new DenialCache(maxCounters);
  }

  decide(
    groups: readonly Group[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Answer>[] {
    const time = this.#timeOf(now);
    // Because of the returned quota, these groups and later ones must not be denied from memory.
    this.#removeReturned(unused);
    const answers = groups.map((group) => this.#denialAt(group, time));
    const open = groups.filter((_, index) => !answers[index]);
    const sentAt = Date.now();
    const isCalled = open.length > 0 || unused.length > 0;
    const decided = isCalled ? this.#store.decide(open, now, unused).values() : [].values();
    return groups.map(async (group, index) => {
      const answer = answers[index];
      if (answer) return answer;
      try {
        const own = await (decided.next().value as Promise<Answer>);
        const isGiven = now !== undefined;
        const answeredAt = this.#timeOf(undefined);
        this.#cache.record(group, own, { sentAt, answeredAt, decidedAt: own.now, isGiven });
        return own;
      } catch (error) {
        const denial = this.#denialAt(group, this.#timeOf(now), true);
        if (!denial) throw error;
        return mayBeCarriedOut(error) ? { ...denial, mayHold: true } : denial;
      }
    });
  }

  denialOf(group: Group, now?: number): Answer | undefined {
    return this.#denialAt(group, this.#timeOf(now));
  }

  async adjust(counters: readonly Adjustment[], now?: number, unused: readonly UnusedQuota[] = []) {
    this.#removeReturned(unused);
    const tallies = await this.#store.adjust(counters, now, unused);
    this.#cache.remove(counters);
    return tallies;
  }

  async reset(counters: readonly Removal[], now?: number): Promise<void> {
    this.#cache.remove(counters);
    await this.#store.reset(counters, now);
    // Answers from before the reset may have been recorded during the call.
    this.#cache.remove(counters);
  }

  #timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    this.#cache.observe(now);
    return now;
  }

  #removeReturned(unused: readonly UnusedQuota[]): void {
    this.#cache.remove(unused.map(({ counter }) => counter));
  }

  /** @param isStoreAway whether the store has failed: see `DenialCache` */
  #denialAt(group: Group, time: number, isStoreAway = false): Answer | undefined {
    const denial = this.#cache.denialOf(group, time, isStoreAway);
    return denial && answerOf(group, denial, time);
  }
}

function answerOf(group: Group, denial: Denial, time: number): Answer {
  // The store's clock minus this isolate's clock, from the first cached counter.
  const now = time + (denial.find(Boolean)?.clockOffsetMs ?? 0);
  const tallies = denial.map(
    (snapshot, index) =>
      snapshot && {
        ...tallyAt(group[index] as Demand, snapshot, now),
        isUncertain: true as const,
      },
  );
  return { now, admitted: false, tallies, fromMemory: true };
}

/**
 * Returns the state of a counter, as far as this isolate knows. If sub-windows have some quota left, but not enough for
 * this request, others may have used it since. So it counts as used now: a client must not retry too early.
 */
function tallyAt(counter: Demand, snapshot: CounterSnapshot, storeNow: number): Tally {
  const tally = tallyOf(snapshot, storeNow);
  if (!snapshot.ring || !countsSubWindows(counter)) return tally;
  const ring = ringAt(counter, snapshot.ring, storeNow);
  const known = countedIn(counter, ring, storeNow);
  if (hasQuota(counter, known.count)) return { ...tally, ...known };
  const left = Math.max(0, counter.ceiling - known.count);
  return { ...tally, ...countedIn(counter, withCharge(ring, left), storeNow) };
}

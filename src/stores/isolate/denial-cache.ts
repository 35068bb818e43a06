import type { Counter, Tally } from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";
import type { GroupAnswer } from "../store.ts";
import { type Frequency, FrequencyMap } from "./frequency-map.ts";
import {
  type CounterSnapshot,
  isValidAt,
  type StoreCall,
  snapshotOf,
  tallyOf,
} from "./snapshot.ts";

/**
 * How long a cached denial is valid at most, in milliseconds. A refund or a reset in another
 * isolate takes effect in this one after this time.
 */
export const MAX_AGE_MS = 10_000;

/**
 * From this many recent uses of an exhausted counter on (see {@link Frequency}), a denial comes
 * from memory even if not all counters of the group are cached; its answer then lacks their
 * tallies. Otherwise a client that varies the key of another counter, such as the path beside the
 * address, would cause a call with each denied request.
 */
const PARTIAL_DENIAL_USES = 500;

/**
 * The snapshots of a denied group's counters, undefined for those that are not cached: one
 * exhausted counter is enough to deny the group.
 */
export type Denial = readonly (CounterSnapshot | undefined)[];

/** Whether a counter has quota for its cost, by a tally. */
type CounterStatus = "available" | "exhausted" | "banned";

interface CachedCounter extends Frequency {
  snapshot: CounterSnapshot;
  /** When the snapshot was received, by this isolate's clock or the time that the caller passed. */
  receivedAt: number;
}

/** Snapshots of the counters of denied groups: plain values, at most `max` of them. */
export class DenialCache {
  readonly #counters: FrequencyMap<CachedCounter>;
  #latest = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#counters = new FrequencyMap(max);
  }

  /**
   * Notes the time of this isolate's clock. If it has gone back, the validity of all snapshots is
   * unknown, and the cache is cleared.
   */
  observe(now: number): void {
    if (now < this.#latest) this.#counters.clear();
    this.#latest = now;
  }

  /**
   * The snapshots of a group's counters, if they show that the group must be denied.
   *
   * @param isStoreAway whether the store has failed. It can then neither add missing tallies nor
   * start a ban, and the denial is certain without them
   */
  denialOf(group: readonly Counter[], now: number, isStoreAway = false): Denial | undefined {
    if (this.#counters.size === 0) return undefined;
    let isDenied = false;
    let recentUses = 0;
    const denial: (CounterSnapshot | undefined)[] = [];
    for (const counter of group) {
      // A request without a cost only asks for the current counts.
      if (counter.cost === 0) return undefined;
      const snapshot = this.#chosenSnapshotOf(counter, now);
      const status = snapshot && statusOf(counter, tallyOf(snapshot, now + snapshot.clockOffsetMs));
      // Only the store can start the ban of a client that exceeds the limit.
      const startsBan = counter.banMs !== undefined && !counter.neverBans && status !== "banned";
      if (startsBan && status !== "available" && !isStoreAway) return undefined;
      denial.push(snapshot);
      if (!snapshot || status === "available") continue;
      isDenied = true;
      recentUses = Math.max(recentUses, this.#use(counter, now));
    }
    const isSufficient = isStoreAway || recentUses >= PARTIAL_DENIAL_USES || denial.every(Boolean);
    return isDenied && isSufficient ? denial : undefined;
  }

  /**
   * Records the store's answer for a group: updates cached counters, and adds those of a denied
   * group. It also adds that group's counters with quota left, so that denials from memory are
   * complete.
   */
  record(group: readonly Counter[], answer: GroupAnswer, call: StoreCall): void {
    if (answer.skipCache) return;
    if (!call.isGiven && call.answeredAt < call.sentAt) return;
    const deniedBy = identitiesThatDeny(group, answer);
    for (const [index, counter] of group.entries()) {
      const tally = answer.tallies[index];
      if (counter.cost === 0 || !tally) continue;
      if (counter.alternative) {
        this.#recordPair(counter, counter.alternative, answer, tally, call);
        continue;
      }
      const isWorthAdding =
        deniedBy.has(counter.identity) || (deniedBy.size > 0 && !answer.isProvisional);
      this.#put(counter, tally, call, isWorthAdding);
    }
  }

  remove(counters: readonly Counter[]): void {
    for (const key of counters.flatMap(keysOf)) this.#counters.delete(key);
  }

  /**
   * Records a counter with an alternative. The tally describes the one with more quota left. If
   * that one is exhausted, the other one has no more quota left than it.
   */
  #recordPair(
    counter: Counter,
    alternative: Counter,
    { admitted }: GroupAnswer,
    tally: Tally,
    call: StoreCall,
  ): void {
    if (admitted || statusOf(counter, tally) !== "exhausted") return;
    const count = Math.max(0, tally.count - counter.ceiling + alternative.ceiling);
    this.#put(counter, tally, call, true);
    this.#put(alternative, { ...tally, count }, call, true);
  }

  /** @param isWorthAdding whether a counter that is not cached is added */
  #put(counter: Counter, tally: Tally, call: StoreCall, isWorthAdding: boolean): void {
    const entry = this.#counters.peek(counter.key);
    if (!entry && !isWorthAdding) return;
    const snapshot = snapshotOf(counter, tally, call);
    const receivedAt = call.isGiven ? call.decidedAt : call.answeredAt;
    if (entry) {
      entry.snapshot = snapshot;
      entry.receivedAt = receivedAt;
    } else {
      const added = { snapshot, receivedAt, recentUses: 1, lastUsedAt: receivedAt };
      this.#counters.add(counter.key, added);
    }
  }

  /** Counts a use. @returns the uses of the counter, or of its alternative if there are more */
  #use(counter: Counter, now: number): number {
    let recentUses = 0;
    for (const key of keysOf(counter)) {
      recentUses = Math.max(recentUses, this.#counters.use(key, now)?.recentUses ?? 0);
    }
    return recentUses;
  }

  /**
   * The snapshot of a counter. A counter with an alternative needs both; the result is then that of
   * the one with more quota left, with its count under the ceiling of the first.
   */
  #chosenSnapshotOf(
    { key, ceiling, alternative }: Counter,
    now: number,
  ): CounterSnapshot | undefined {
    const snapshot = this.#snapshotOf(key, now);
    if (!snapshot || !alternative) return snapshot;
    const other = this.#snapshotOf(alternative.key, now);
    if (!other) return undefined;
    const otherCount = other.count + ceiling - alternative.ceiling;
    return otherCount < snapshot.count ? { ...other, count: otherCount } : snapshot;
  }

  #snapshotOf(key: string, now: number): CounterSnapshot | undefined {
    const entry = this.#counters.peek(key);
    if (!entry) return undefined;
    const { snapshot, receivedAt } = entry;
    const isRecent = receivedAt <= now && now < receivedAt + MAX_AGE_MS;
    if (isRecent && isValidAt(snapshot, now)) return snapshot;
    this.#counters.delete(key);
    return undefined;
  }
}

function identitiesThatDeny(group: readonly Counter[], answer: GroupAnswer): Set<string> {
  const identities = new Set<string>();
  if (answer.admitted) return identities;
  for (const [index, counter] of group.entries()) {
    const tally = answer.tallies[index];
    if (tally && statusOf(counter, tally) !== "available") identities.add(counter.identity);
  }
  return identities;
}

function keysOf({ key, alternative }: Counter): string[] {
  return alternative ? [key, alternative.key] : [key];
}

function statusOf(counter: Counter, { count, banMs }: Tally): CounterStatus {
  if (banMs > 0) return "banned";
  return hasQuota(counter, count) ? "available" : "exhausted";
}

import {
  type Counter,
  decideGroup,
  EXPIRY_GRACE_MS,
  storedKey,
  type Tally,
  windowAt,
} from "../engine/fixed-window.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

/** Counters kept at most: about 20 MB. */
const MAX_COUNTERS = 100_000;

interface Entry {
  readonly count: number;
  readonly expiresAt: number;
}

/**
 * A store in this isolate's memory, for tests and for a single process. Cloudflare runs many
 * isolates and each would count alone.
 *
 * Bounded: past `maxCounters` it drops the counters of ended windows, and when all of them are
 * live it throws a `StoreError` ("full") rather than forget one, which would exceed a limit.
 */
export function memoryStore(maxCounters = MAX_COUNTERS): Store {
  const entries = new Map<string, Entry>();
  /** Before this, looking for ended windows is in vain. */
  let earliestExpiry = 0;

  function countOf(counter: Counter, now: number): number {
    const entry = entries.get(storedKey(counter, now));
    return entry && entry.expiresAt > now ? entry.count : 0;
  }

  function makeRoom(counters: readonly Counter[], now: number): void {
    const added = counters.filter((counter) => !entries.has(storedKey(counter, now))).length;
    if (entries.size + added <= maxCounters) return;
    if (now >= earliestExpiry) earliestExpiry = dropExpired(entries, now);
    if (entries.size + added > maxCounters) {
      throw new StoreError("full", `the memory store holds ${maxCounters} counters already`);
    }
  }

  function charge(counter: Counter, count: number, now: number): void {
    const expiresAt = windowAt(now, counter).endsAt + EXPIRY_GRACE_MS;
    entries.set(storedKey(counter, now), { count, expiresAt });
  }

  return {
    async decide(groups, now = Date.now()) {
      makeRoom(groups.flat(), now);
      const verdicts = groups.map((counters) => {
        const counts = counters.map((counter) => countOf(counter, now));
        const verdict = decideGroup(counters, counts, now);
        if (verdict.admitted) {
          counters.forEach((counter, index) => {
            charge(counter, (verdict.tallies[index] as Tally).count, now);
          });
        }
        return verdict;
      });
      return { now, groups: verdicts };
    },
  };
}

/** @returns when the first of those that are left expires */
function dropExpired(entries: Map<string, Entry>, now: number): number {
  let earliest = Number.POSITIVE_INFINITY;
  for (const [key, { expiresAt }] of entries) {
    if (expiresAt <= now) entries.delete(key);
    else earliest = Math.min(earliest, expiresAt);
  }
  return earliest;
}

import {
  adjustGroup,
  decideGroup,
  giveBack,
  type Row,
  resetGroup,
  type Writes,
} from "../engine/fixed-window.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

/** Counters kept at most: about 20 MB. */
const MAX_COUNTERS = 100_000;

/**
 * A store in this isolate's memory, for tests and for a single process. Cloudflare runs many
 * isolates and each would count alone.
 *
 * Bounded: past `maxCounters` it drops what has expired, and when nothing has it throws a
 * `StoreError` ("full") rather than forget a live counter, which would exceed a limit.
 */
export function memoryStore(maxCounters = MAX_COUNTERS): Store {
  const rows = new Map<string, Row>();
  /** Before this, looking for what has expired is in vain. */
  let earliestExpiry = 0;

  function reader(now: number) {
    return (key: string): Row | undefined => {
      const row = rows.get(key);
      return row && row.expiresAt > now ? row : undefined;
    };
  }

  function write(writes: Writes, now: number): void {
    const added = [...writes].filter(([key, row]) => row && !rows.has(key)).length;
    if (rows.size + added > maxCounters && now >= earliestExpiry) {
      earliestExpiry = dropExpired(rows, now);
    }
    if (rows.size + added > maxCounters) {
      throw new StoreError("full", `the memory store holds ${maxCounters} counters already`);
    }
    for (const [key, row] of writes) {
      if (row) rows.set(key, row);
      else rows.delete(key);
    }
  }

  return {
    async decide(groups, now = Date.now(), unused = []) {
      write(giveBack(unused, now, reader(now)), now);
      const verdicts = groups.map((counters) => {
        const { verdict, writes } = decideGroup(counters, now, reader(now));
        write(writes, now);
        return verdict;
      });
      return { now, groups: verdicts };
    },

    async adjust(counters, now = Date.now()) {
      const { tallies, writes } = adjustGroup(counters, now, reader(now));
      write(writes, now);
      return tallies;
    },

    async reset(counters, now = Date.now()) {
      write(resetGroup(counters, now), now);
    },
  };
}

/** @returns when the first of those that are left expires */
function dropExpired(rows: Map<string, Row>, now: number): number {
  let earliest = Number.POSITIVE_INFINITY;
  for (const [key, { expiresAt }] of rows) {
    if (expiresAt <= now) rows.delete(key);
    else earliest = Math.min(earliest, expiresAt);
  }
  return earliest;
}

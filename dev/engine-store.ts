import type { Row, Writes } from "../src/engine/counter.ts";
import { adjustGroup, decideGroup, resetGroup, returnUnused } from "../src/engine/fixed-window.ts";
import type { Store } from "../src/stores/store.ts";

/** Creates a store that only calls the engine. It never removes expired rows. */
export function createEngineStore(): Store {
  const rows = new Map<string, Row>();
  const rowReader = (now: number) => (key: string) => {
    const row = rows.get(key);
    return row && row.expiresAt > now ? row : undefined;
  };
  const write = (writes: Writes) => {
    for (const [key, row] of writes) row ? rows.set(key, row) : rows.delete(key);
  };
  return {
    decide(groups, now = Date.now(), unused = []) {
      write(returnUnused(unused, now, rowReader(now)));
      return groups.map(async (group) => {
        const { verdict, writes } = decideGroup(group, now, rowReader(now));
        write(writes);
        return { ...verdict, now };
      });
    },
    async adjust(counters, now = Date.now(), unused = []) {
      write(returnUnused(unused, now, rowReader(now)));
      const { tallies, writes } = adjustGroup(counters, now, rowReader(now));
      write(writes);
      return tallies;
    },
    async reset(counters, now = Date.now()) {
      write(resetGroup(counters, now));
    },
  };
}

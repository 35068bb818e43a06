import type { Store } from "../../src/stores/store.ts";
import type { RowTable } from "./row-table.ts";

/** Returns a store whose counters are in a table, and whose clock is that of the simulation. */
export function createRowStore(rows: RowTable): Store {
  return {
    async decide(groups, now = Date.now(), unused = []) {
      rows.returnUnused(unused, now);
      return { now, groups: rows.decide(groups, now) };
    },
    adjust: async (counters, now = Date.now()) => rows.adjust(counters, now),
    reset: () => Promise.reject(new Error("A replay resets no counters.")),
  };
}

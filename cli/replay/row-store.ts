import type { Store } from "../../src/stores/store.ts";
import type { RowTable } from "./row-table.ts";

/** Returns a store whose counters are in a table, and whose clock is that of the simulation. */
export function createRowStore(rows: RowTable): Store {
  return {
    decide(groups, now = Date.now(), unused = []) {
      rows.returnUnused(unused, now);
      return rows.decide(groups, now).map(async (answer) => ({ ...answer, now }));
    },
    async adjust(counters, now = Date.now(), unused = []) {
      rows.returnUnused(unused, now);
      return rows.adjust(counters, now);
    },
    reset: () => Promise.reject(new Error("A replay resets no counters.")),
  };
}

import { type Demand, type UnusedQuota, windowAt } from "../../../src/engine/counter.ts";
import type { Answer, Group } from "../../../src/stores/store.ts";
import type { NetworkRecorder } from "../network.ts";

/**
 * Counts what the calls of a simulation cost in both stores, by the tables of docs/cost.md. Redis: one command for the
 * script, one for each counter with the same cost, one more if the counter is new or if its quota is not enough.
 * Durable Objects: one call for each client in a call, and one row for each charge. A test compares the commands with
 * those that the script counts in Redis.
 */
export class CallMeter implements NetworkRecorder {
  restCalls = 0;
  /** Counters and returns in all calls, without equal ones of a call. */
  entries = 0;
  commands = 0;
  objectCalls = 0;
  rowsWritten = 0;
  /** For each counter: the number of its last window. */
  readonly #windows = new Map<string, number>();

  recordCall(): void {}

  recordCharges(
    _isolate: unknown,
    groups: readonly Group[],
    answers: readonly Answer[],
    unused: readonly UnusedQuota[],
  ): void {
    const demands = groups.map(([demand]) => demand as Demand);
    const entries = Map.groupBy(demands.keys(), (at) => entryOf(demands[at] as Demand));
    const clients = new Set(
      [...demands, ...unused.map(({ counter }) => counter)].map(({ key }) => key),
    );
    this.restCalls += 1;
    this.entries += entries.size + unused.length;
    this.commands += 1 + entries.size + unused.length;
    this.objectCalls += clients.size;
    this.rowsWritten += unused.length;
    for (const places of entries.values()) {
      const admitted = places.filter((at) => answers[at]?.admitted);
      if (admitted.length < places.length) this.commands += 1;
      if (admitted.length > 0) this.rowsWritten += 1;
      const [at = 0] = places;
      const [demand, answer] = [demands[at] as Demand, answers[at]];
      const { index } = windowAt(answer?.now ?? 0, demand);
      if (this.#windows.get(demand.key) !== index && admitted.length > 0) this.commands += 1;
      if (admitted.length > 0) this.#windows.set(demand.key, index);
    }
  }

  recordAdjustment(
    counters: readonly unknown[],
    _tallies: unknown,
    unused: readonly UnusedQuota[],
  ): void {
    this.restCalls += 1;
    this.entries += counters.length + unused.length;
    this.commands += 1 + counters.length + unused.length;
    this.objectCalls += new Set(unused.map(({ counter }) => counter.key)).size;
    this.rowsWritten += unused.length;
  }
}

/** Requests with the same text share one command in a call. */
function entryOf({ key, cost, block }: Demand): string {
  return `${key} ${cost} ${block}`;
}

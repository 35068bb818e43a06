import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import type { Store } from "../stores/store.ts";
import { type ClientState, readClients } from "./client-state.ts";
import { timeOf } from "./clock.ts";
import { allCountersOf, countersOf } from "./counters.ts";

type ClientsConfig = Pick<Config, "clock" | "prefix">;

/**
 * Reads and changes the stored states of clients, for operators and programs. All methods throw a
 * `StoreError` if the call to the store failed; it may have changed the counters anyway.
 */
export class Clients {
  readonly #config: ClientsConfig;
  readonly #store: Store;

  constructor(config: ClientsConfig, store: Store) {
    this.#config = config;
    this.#store = store;
  }

  /** Reads the states of clients, and charges nothing. */
  read(appliedRules: readonly AppliedRule[]): Promise<ClientState[]> {
    return readClients(this.#store, appliedRules, this.#config.prefix, timeOf(this.#config));
  }

  /** Removes a client's counts and reservations under a rule, and its ban. */
  async reset(appliedRule: AppliedRule): Promise<void> {
    const counters = countersOf(allCountersOf(appliedRule, this.#config.prefix));
    await this.#store.reset(counters, timeOf(this.#config));
  }

  /** Removes a client's ban under a rule, and keeps its counts. */
  async liftBan(appliedRule: AppliedRule): Promise<void> {
    const counters = countersOf(allCountersOf(appliedRule, this.#config.prefix));
    const kept = counters.map((counter) => ({ ...counter, keepsCount: true }));
    await this.#store.reset(kept, timeOf(this.#config));
  }
}

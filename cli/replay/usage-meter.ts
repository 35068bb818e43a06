import type { Config } from "../../src/config/schema.ts";
import type { Counter, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";
import { billedCommands, commandsOfGroup } from "../../src/stores/upstash/billed-commands.ts";
import type { RememberedClient } from "./applied-client.ts";
import type { StoreUsage } from "./replay-engine.ts";

/** Adds up the calls to the store, and the commands that Upstash would bill for them. */
export class UsageMeter {
  readonly #billed: ReturnType<typeof billedCommands>;
  readonly #commandsPerCall: number;
  readonly #isRedis: boolean;
  #calls = 0;
  #commands = 0;

  constructor({ clock, store }: Pick<Config, "clock" | "store">) {
    this.#billed = billedCommands(clock);
    this.#commandsPerCall = this.#billed.decide([], { now: 0, groups: [] }, []);
    this.#isRedis = store === "upstash" || store === undefined;
  }

  /** `commands` is 0 if the configuration names another store than Upstash. */
  get total(): StoreUsage {
    return { calls: this.#calls, commands: this.#isRedis ? this.#commands : 0 };
  }

  addDecision(
    groups: readonly (readonly Counter[])[],
    answers: readonly GroupAnswer[],
    unused: readonly UnusedQuota[] = [],
  ): void {
    this.#calls++;
    this.#commands += this.#billed.decide(groups, { now: 0, groups: answers }, unused);
  }

  /** Adds a decision on the counters of these clients. */
  addClients(clients: readonly RememberedClient[], answer: GroupAnswer): void {
    this.#calls++;
    if (!this.#isRedis) return;
    const [first] = clients;
    const counters =
      clients.length === 1 && first
        ? first.template.counters
        : clients.flatMap(({ template }) => template.counters);
    this.#commands += this.#commandsPerCall + commandsOfGroup(counters, answer);
  }

  addAdjustment(counters: readonly Counter[], tallies: readonly Tally[]): void {
    this.#calls++;
    this.#commands += this.#billed.adjust(counters, tallies);
  }
}

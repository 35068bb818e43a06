import type { Config } from "../../src/config/schema.ts";
import type { Counter, Tally } from "../../src/engine/counter.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";
import { billedCommands } from "../../src/stores/upstash/billed-commands.ts";
import type { StoreUsage } from "./replay-engine.ts";

/** Adds up the calls to the store, and the commands that Upstash would bill for them. */
export class UsageMeter {
  readonly #billed: ReturnType<typeof billedCommands>;
  readonly #isRedis: boolean;
  #calls = 0;
  #commands = 0;

  constructor({ clock, store }: Pick<Config, "clock" | "store">) {
    this.#billed = billedCommands(clock);
    this.#isRedis = store === "upstash" || store === undefined;
  }

  /** `commands` is 0 if the configuration names another store than Upstash. */
  get total(): StoreUsage {
    return { calls: this.#calls, commands: this.#commands };
  }

  addDecision(groups: readonly (readonly Counter[])[], answers: readonly GroupAnswer[]): void {
    this.#calls++;
    if (!this.#isRedis) return;
    this.#commands += this.#billed.decide(groups, { now: 0, groups: answers }, []);
  }

  addAdjustment(counters: readonly Counter[], tallies: readonly Tally[]): void {
    this.#calls++;
    if (this.#isRedis) this.#commands += this.#billed.adjust(counters, tallies);
  }
}

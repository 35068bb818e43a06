import type { Config } from "../../src/config/schema.ts";
import type { Counter, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import {
  commandsOfAdjustment,
  commandsOfGroup,
  commandsPerCall,
} from "../../src/stores/upstash/billed-commands.ts";
import type { RememberedClient } from "./applied-client.ts";
import type { GroupAnswer } from "./group-answers.ts";
import { adjustmentCalls, decisionCalls } from "./object-calls.ts";
import type { StoreUsage } from "./replay-engine.ts";

type Group = readonly Counter[];

/**
 * Adds up the calls to the store, and the commands that Upstash would bill for them. Without a configured store,
 * the store is Upstash. Only with `store: "durable-object"`, a decision may take several calls.
 */
export class UsageMeter {
  readonly #commandsPerCall: number;
  readonly #store: Config["store"];
  #calls = 0;
  #commands = 0;

  constructor({ clock, store = "upstash" }: Pick<Config, "clock" | "store">) {
    this.#commandsPerCall = commandsPerCall(clock);
    this.#store = store;
  }

  /** `commands` is 0 if the configuration names another store than Upstash. */
  get total(): StoreUsage {
    return { calls: this.#calls, commands: this.#commands };
  }

  addDecision(
    groups: readonly Group[],
    answers: readonly GroupAnswer[],
    unused: readonly UnusedQuota[] = [],
  ): void {
    if (this.#store === "durable-object") {
      this.#calls += decisionCalls(groups, answers, unused);
      return;
    }
    this.#calls++;
    if (this.#store !== "upstash") return;
    this.#commands += this.#commandsPerCall + unused.length;
    for (const [index, group] of groups.entries()) {
      this.#commands += commandsOfGroup(group, answers[index] as GroupAnswer);
    }
  }

  /** Adds a decision on groups: each has the counters of some clients. */
  addClients(
    groups: readonly (readonly RememberedClient[])[],
    answers: readonly GroupAnswer[],
  ): void {
    if (this.#store === "durable-object") {
      this.#calls += decisionCalls(groups.map(identifiedCounters), answers, []);
      return;
    }
    this.#calls++;
    if (this.#store !== "upstash") return;
    this.#commands += this.#commandsPerCall;
    let index = 0;
    for (const clients of groups) {
      this.#commands += commandsOfGroup(countersOf(clients), answers[index++] as GroupAnswer);
    }
  }

  /**
   * Adds a decision on groups of one identity.
   *
   * @param objectCalls the calls that it takes with Durable Objects
   * @param commands the commands for its groups, without those for the call itself
   */
  addCommands(objectCalls: number, commands: number): void {
    if (this.#store === "durable-object") {
      this.#calls += objectCalls;
      return;
    }
    this.#calls++;
    if (this.#store === "upstash") this.#commands += this.#commandsPerCall + commands;
  }

  addAdjustment(
    counters: Group,
    tallies: readonly Tally[],
    unused: readonly UnusedQuota[] = [],
  ): void {
    if (this.#store === "durable-object") {
      this.#calls += adjustmentCalls(counters);
      return;
    }
    this.#calls++;
    if (this.#store !== "upstash") return;
    this.#commands += this.#commandsPerCall + unused.length;
    this.#commands += commandsOfAdjustment(counters, tallies);
  }
}

/** Returns the counters of clients, without their identities. */
function countersOf(clients: readonly RememberedClient[]): Group {
  const [first] = clients;
  return clients.length === 1 && first
    ? first.template.counters
    : clients.flatMap(({ template }) => template.counters);
}

/** Returns the counters of clients, each with the identity that determines its Durable Object. */
function identifiedCounters(clients: readonly RememberedClient[]): Group {
  return clients.flatMap(({ template, identity }) =>
    template.counters.map((counter) => ({ ...counter, identity })),
  );
}

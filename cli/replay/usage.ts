import { monthlyDollars, storeCost } from "../../src/admin/dashboard/cost.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Demand, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import { partsOf } from "../../src/stores/durable-object/shards.ts";
import { isOptional } from "../../src/stores/store.ts";
import {
  commandsOfAdjustment,
  commandsOfGroup,
  commandsPerCall,
} from "../../src/stores/upstash/billed-commands.ts";
import type { RememberedClient } from "./clients.ts";
import type { GroupAnswer } from "./group-answers.ts";
import type { CostReport, StoreUsage } from "./report.ts";

// Estimates of the calls to Durable Objects, by the tables of docs/cost.md. Each identity has an object.

type CallGroup = readonly Demand[];

/** The calls of a charge to a counter with two shards: both are read first. */
const CALLS_OF_SHARDED_CHARGE = 3;

/**
 * Returns the calls that a decision takes. If the enforced rules need only one object, the other rules of this
 * object share its call.
 *
 * @param unused quota that is returned with the decision
 */
function decisionCalls(
  groups: readonly CallGroup[],
  answers: readonly (GroupAnswer | undefined)[],
  unused: readonly UnusedQuota[],
): number {
  const called = new Set<string>();
  let shared: string | undefined;
  let calls = 0;
  for (const [index, group] of groups.entries()) {
    const answer = answers[index];
    const isAdmitted = answer?.admitted ?? true;
    const parts = partsOf(group);
    const [first] = parts;
    if (answer?.tallies.length === 0 || !first || first.identity === shared) continue;
    const hasShards = group.some(({ alternative }) => alternative);
    calls += groupCalls(parts.length, isAdmitted) + (hasShards && !isAdmitted ? 1 : 0);
    for (const { identity } of parts) called.add(identity);
    if (parts.length === 1 && !isOptional(group)) shared = first.identity;
  }
  return calls + unused.filter(({ counter }) => !called.has(counter.identity)).length;
}

/**
 * Returns the calls that one group takes. With several objects, each one except the last is called a second
 * time after an admission. After a denial, it depends on the object that denied: this is the minimum.
 *
 * @param objects the number of objects with counters of the group
 */
function groupCalls(objects: number, isAdmitted: boolean): number {
  return isAdmitted ? 2 * objects - 1 : objects;
}

/** Returns the calls that a charge after a response takes. */
function adjustmentCalls(counters: CallGroup): number {
  const isSharded = counters.some(({ alternative }) => alternative);
  return partsOf(counters).length * (isSharded ? CALLS_OF_SHARDED_CHARGE : 1);
}

type Group = readonly Demand[];

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

/** A shorter log says too little about a month. */
const MIN_PERIOD_MS = 3_600_000;

/**
 * Returns what the calls to the store would have cost.
 *
 * @param periodMs the time from the first request to the last one
 * @returns undefined for the store in memory, which is free
 */
export function costReport(
  usage: StoreUsage,
  store: Config["store"],
  periodMs: number,
): CostReport | undefined {
  const cost = storeCost(usage, store);
  if (cost === undefined) return undefined;
  const { unit, count, dollars } = cost;
  const isLong = periodMs >= MIN_PERIOD_MS;
  return {
    ...{ unit, count, calls: usage.calls, dollars },
    dollarsPer30Days: isLong ? monthlyDollars(dollars, periodMs) : undefined,
  };
}

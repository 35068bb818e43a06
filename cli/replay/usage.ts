import { monthlyDollars, storeCost } from "../../src/admin/dashboard/cost.ts";
import { defaultClock } from "../../src/config/bindings.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Adjustment, Tally } from "../../src/engine/counter.ts";
import { countsSlots } from "../../src/engine/slots.ts";
import { countersOf } from "../../src/limiter/counters.ts";
import { partsOf } from "../../src/stores/durable-object/object-calls.ts";
import { type Group, isOptional } from "../../src/stores/store.ts";
import { type ClientGroup, type GroupAnswer, keyedCountersOf } from "./groups.ts";
import type { CostReport } from "./report.ts";

/** The calls to the store that the replayed requests would have made. */
export interface StoreUsage {
  /** Calls: REST calls to Upstash, or calls to Durable Objects. */
  readonly calls: number;
  /** Commands that Upstash would bill. */
  readonly commands: number;
}

/** Estimates the commands for the counters of a group, without slots: see docs/cost.md. */
function groupCommands(group: Group, { admitted, tallies }: GroupAnswer): number {
  const commands = group.map(({ rollsOver, ban, cost, checkOnly, slot }, index) => {
    const { count = 0, banMs = 0 } = tallies[index] ?? {};
    const isCharged = cost > 0 && !checkOnly;
    const isBanned = banMs > 0 && !ban?.lengthsMs.includes(banMs);
    const hasSecond = admitted ? rollsOver || count === cost : !rollsOver && !isBanned;
    const begins = banMs > 0 && !isBanned ? (ban?.lengthsMs.length === 1 ? 1 : 3) : 0;
    return slot === undefined ? 1 + Number(isCharged && hasSecond) + Number(!!ban) + begins : 0;
  });
  return commands.reduce((sum, each) => sum + each, 0);
}

// Estimates of the calls to Durable Objects, by the tables of docs/cost.md. Each identity has an object.

/**
 * Returns the calls that a decision takes. If the enforced rules need only one object, the other rules of this
 * object share its call.
 */
function decisionCalls(groups: readonly Group[], answers: readonly GroupAnswer[]): number {
  let shared: string | undefined;
  let calls = 0;
  for (const [index, group] of groups.entries()) {
    const { admitted, tallies } = answers[index] as GroupAnswer;
    const parts = partsOf(group);
    const [first] = parts;
    if (tallies.length === 0 || !first || first.identity === shared) continue;
    calls += groupCalls(parts.length, admitted);
    if (parts.length === 1 && !isOptional(group)) shared = first.identity;
  }
  return calls;
}

/**
 * Returns the calls that one group takes. With several objects, each one except the last is called a second time
 * after an admission. After a denial, the number depends on the object that denied; the result is the minimum.
 *
 * @param objects the number of objects with counters of the group
 */
function groupCalls(objects: number, isAdmitted: boolean): number {
  return isAdmitted ? 2 * objects - 1 : objects;
}

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
    this.#commandsPerCall = (clock ?? defaultClock(store)) === "store" ? 2 : 1;
    this.#store = store;
  }

  /** `commands` is 0 if the configuration names another store than Upstash. */
  get total(): StoreUsage {
    return { calls: this.#calls, commands: this.#commands };
  }

  /** Adds a decision on the rules of a request. */
  addClients(groups: readonly ClientGroup[], answers: readonly GroupAnswer[]): void {
    if (groups.length === 0) return;
    const isObject = this.#store === "durable-object";
    // Only calls to Durable Objects depend on the identities.
    const field = isObject ? "keyedCounters" : "ruleCounters";
    const countersIn = () =>
      groups.map((group) => countersOf(group.flatMap((client) => client[field])));
    this.#calls += isObject ? decisionCalls(countersIn(), answers) : 1;
    if (this.#store !== "upstash") return;
    this.#commands += this.#commandsPerCall;
    for (const [index, group] of countersIn().entries()) {
      const answer = answers[index] as GroupAnswer;
      if (answer.tallies.length > 0) this.#commands += groupCommands(group, answer);
    }
  }

  /**
   * Adds the slots of a decision, with the later calls that renew them and give them back.
   *
   * @param openMs how long the request is open
   */
  addSlots(groups: readonly ClientGroup[], answers: readonly GroupAnswer[], openMs: number): void {
    const isUpstash = this.#store === "upstash";
    for (const [index, group] of groups.entries()) {
      const slots = countersOf(keyedCountersOf(group)).filter(countsSlots);
      const { admitted, tallies } = answers[index] as GroupAnswer;
      const [first] = slots;
      if (!first || tallies.length === 0) continue;
      if (isUpstash) this.#commands += slots.length * (admitted ? 3 : 1);
      if (!admitted) continue;
      // A slot is renewed after each half of its `maxDuration`.
      const renewals = Math.floor((2 * openMs) / first.windowMs);
      const calls = 1 + renewals;
      this.#calls += calls * (this.#store === "durable-object" ? partsOf(slots).length : 1);
      if (isUpstash)
        this.#commands += calls * this.#commandsPerCall + (1 + 3 * renewals) * slots.length;
    }
  }

  addAdjustment(counters: readonly Adjustment[], tallies: readonly Tally[]): void {
    this.#calls += this.#store === "durable-object" ? partsOf(counters).length : 1;
    if (this.#store !== "upstash") return;
    this.#commands += this.#commandsPerCall;
    for (const [index, { rollsOver, ban, cost }] of counters.entries()) {
      const hasSecond = rollsOver || tallies[index]?.count === cost;
      this.#commands += 1 + Number(hasSecond) + Number(!!ban);
    }
  }
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
  const cost = storeCost(usage, store ?? "upstash");
  if (cost === undefined) return undefined;
  const { unit, count, dollars } = cost;
  const isLong = periodMs >= MIN_PERIOD_MS;
  return {
    ...{ unit, count, calls: usage.calls, dollars },
    dollarsPer30Days: isLong ? monthlyDollars(dollars, periodMs) : undefined,
  };
}

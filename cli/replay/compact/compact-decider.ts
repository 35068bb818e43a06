import { chargeOf, hasQuota } from "../../../src/engine/fixed-window.ts";
import { commandsOfCounter } from "../../../src/stores/upstash/billed-commands.ts";
import type { UsageMeter } from "../usage.ts";
import type { CompactClients } from "./compact-clients.ts";
import type { CompactWindow } from "./compact-rules.ts";
import type { RuleSet } from "./rule-sets.ts";

/**
 * Decides requests as the exact engine does: all enforced rules of a request as one group, which is charged as a whole
 * or not at all, and each rule in shadow mode as a group of its own.
 */
export class CompactDecider {
  readonly #clients: CompactClients;
  readonly #usage: UsageMeter;
  /** For each window: whether it denied its group in the last request. */
  readonly #exceeded: Uint8Array;
  readonly #counts: Float64Array;
  readonly #tally = { count: 0, resetMs: 0, banMs: 0 };
  #commands = 0;
  /** Whether an enforced rule has denied the last request. */
  isLimited = false;
  /** Whether a rule has denied the last request, or would have in another mode than shadow. */
  isDenied = false;

  /** @param windows the number of windows of all rules */
  constructor(windows: number, clients: CompactClients, usage: UsageMeter) {
    this.#clients = clients;
    this.#usage = usage;
    this.#exceeded = new Uint8Array(windows);
    this.#counts = new Float64Array(windows);
  }

  /** Decides a request of a client. @param now never earlier than in earlier calls */
  decide(set: RuleSet, client: number, now: number): void {
    const { enforced, isCertainlyDenied } = set;
    this.isLimited = false;
    this.isDenied = false;
    this.#commands = 0;
    if (isCertainlyDenied) this.#denyCertainly(enforced, now);
    else if (enforced.length > 0) this.isLimited = !this.#decideGroup(enforced, client, now);
    for (const windows of set.shadow) this.#decideGroup(windows, client, now);
    const isEnforcedCalled = enforced.length > 0 && !isCertainlyDenied;
    if (!isEnforcedCalled && set.shadow.length === 0) return;
    // All counters of a client are in one object. Its shadow groups share the call of its enforced group.
    this.#usage.addCommands(isEnforcedCalled ? 1 : set.shadow.length, this.#commands);
  }

  /** Whether a window denied its group in the last request. */
  hasDenied({ index }: CompactWindow): boolean {
    return this.#exceeded[index] === 1;
  }

  #decideGroup(windows: readonly CompactWindow[], client: number, now: number): boolean {
    const { records } = this.#clients;
    let isAdmitted = true;
    for (const window of windows) {
      window.advance(now);
      const count = records.count(client, window.index, window.number);
      this.#counts[window.index] = count;
      if (!hasQuota(window.counter, count)) isAdmitted = false;
    }
    if (!isAdmitted) this.isDenied = true;
    for (const window of windows) this.#charge(window, client, isAdmitted);
    return isAdmitted;
  }

  #charge({ index, number, counter }: CompactWindow, client: number, isAdmitted: boolean): void {
    const before = this.#counts[index] as number;
    const charge = isAdmitted ? chargeOf(counter, before) : 0;
    if (charge > 0) this.#clients.records.setCount(client, index, number, before + charge);
    this.#exceeded[index] = isAdmitted || hasQuota(counter, before) ? 0 : 1;
    this.#tally.count = before + charge;
    this.#commands += commandsOfCounter(counter, this.#tally, isAdmitted);
  }

  /** Denies a group without a call to the store, because some of its windows never have quota. */
  #denyCertainly(windows: readonly CompactWindow[], now: number): void {
    this.isLimited = true;
    this.isDenied = true;
    for (const window of windows) {
      window.advance(now);
      this.#exceeded[window.index] = window.deniesCertainly ? 1 : 0;
    }
  }
}

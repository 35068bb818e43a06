import { waitUntil } from "cloudflare:workers";
import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import type { Store } from "../stores/store.ts";
import { timeOf } from "./clock.ts";
import { countersOf, type RuleCounter } from "./counters.ts";
import type { Quota } from "./decision.ts";
import type { Fallback } from "./fallback.ts";
import { quotasOf } from "./quotas.ts";
import { type Reserve, reserveOf } from "./reserves.ts";
import {
  chargedCountersOf,
  type FinalCost,
  type ResponseCharge,
  responseChargesOf,
} from "./response-charges.ts";
import { dependsOnResponse } from "./rule-cost.ts";

type ChargerConfig = Pick<Config, "clock" | "prefix">;

/** Returns the final cost under a rule; undefined if it will be known later. */
export type CostOf = (appliedRule: AppliedRule) => FinalCost | undefined;

/** Charges rules whose cost depends on the response, and settles their reserves. */
export class ResponseCharger {
  readonly #config: ChargerConfig;
  readonly #store: Store;
  readonly #fallback: Fallback;

  constructor(config: ChargerConfig, store: Store, fallback: Fallback) {
    this.#config = config;
    this.#store = store;
    this.#fallback = fallback;
  }

  /**
   * Charges the rules whose cost depends on the response, with one call to the store. If a reserve
   * was charged, charges or gives back only the difference.
   *
   * @param countedLocally whether this isolate decided alone; then only the counters in this
   * isolate's memory are charged
   * @param shadow the decision's results of rules in shadow mode. Such a rule is charged after the
   * store has decided it, because its reserve is not known before
   * @returns the updated quotas of the enforced rules that were charged in the store
   * @throws {StoreError} if the call to the store failed; it may have charged the counters anyway
   */
  async charge(
    appliedRules: readonly AppliedRule[],
    costOf: CostOf,
    countedLocally: boolean,
    shadow: readonly unknown[],
  ): Promise<Quota[]> {
    const chargedRules = appliedRules.filter(({ rule }) => dependsOnResponse(rule));
    const shadowRules = chargedRules.filter(({ rule }) => rule.mode === "shadow");
    if (shadowRules.length > 0 && !countedLocally) {
      waitUntil(this.#chargeShadowRules(shadowRules, costOf, shadow).catch(() => {}));
    }
    const enforcedRules = chargedRules.filter(({ rule }) => rule.mode !== "shadow");
    const charges = responseChargesOf(enforcedRules, costOf);
    if (charges.length === 0) return [];
    if (countedLocally) {
      await this.#fallback.charge(charges);
      return [];
    }
    try {
      return await this.#charge(charges);
    } catch (error) {
      // This isolate has not charged the reserves, so it gives nothing back.
      await this.#fallback.charge(charges.filter(({ cost }) => cost > 0));
      throw error;
    }
  }

  /**
   * Charges or gives back the difference between the used quota and a reserve. Throws like
   * `charge`.
   *
   * @param cost the difference; negative if quota is given back
   */
  settle(appliedRule: AppliedRule, reserve: Reserve, cost: number): Promise<Quota[]> {
    return this.adjust(chargedCountersOf({ appliedRule, cost }, reserve, this.#config.prefix));
  }

  /** Adds each counter's cost in the store, and returns the quotas. Throws like `charge`. */
  async adjust(ruleCounters: readonly RuleCounter[]): Promise<Quota[]> {
    const now = timeOf(this.#config);
    const tallies = await this.#store.adjust(countersOf(ruleCounters), now);
    return quotasOf(ruleCounters, { admitted: true, tallies }, now ?? Date.now());
  }

  /** Charges rules in shadow mode in a separate call. Its failure affects no enforced rule. */
  async #chargeShadowRules(
    appliedRules: readonly AppliedRule[],
    costOf: CostOf,
    shadow: readonly unknown[],
  ): Promise<void> {
    await Promise.all(shadow);
    const identified = await Promise.all(appliedRules.map((each) => each.later ?? [each]));
    const charges = responseChargesOf(identified.flat(), costOf);
    if (charges.length > 0) await this.#charge(charges);
  }

  #charge(charges: readonly ResponseCharge[]): Promise<Quota[]> {
    return this.adjust(
      charges.flatMap((charge) =>
        chargedCountersOf(charge, reserveOf(charge.appliedRule), this.#config.prefix),
      ),
    );
  }
}

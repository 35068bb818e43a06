import { waitUntil } from "cloudflare:workers";
import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { Store } from "../stores/store.ts";
import {
  chargedCountersOf,
  type FinalCost,
  type ResponseCharge,
  responseChargesOf,
} from "./cost.ts";
import { countersOf, type Reserve, type RuleCounter, timeOf } from "./counters.ts";
import { type Allowed, mayBeCharged, type Quota, quotasOf, type RuleVerdict } from "./decision.ts";
import type { Fallback } from "./fallback.ts";

type ChargerConfig = Pick<Config, "clock" | "prefix">;

/** The fields of a decision that its charge needs. */
export type ChargedDecision = Pick<Allowed, "verdicts" | "storeFailure">;

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
   * Charges the rules that have admitted the request, with one call to the store. If a reserve was
   * charged, charges or gives back only the difference. A rule in shadow mode is charged after the store
   * has decided it, because its reserve is not known before.
   *
   * @param decision if this isolate decided alone, only the counters in its memory are charged
   * @returns the updated quotas of the enforced rules that were charged in the store
   * @throws {StoreError} if the call to the store failed; it may have charged the counters anyway
   */
  async charge({ verdicts, storeFailure }: ChargedDecision, costOf: CostOf): Promise<Quota[]> {
    const isShadow = ({ appliedRule }: RuleVerdict) => appliedRule.rule.mode === "shadow";
    const shadowVerdicts = verdicts.filter((each) => isShadow(each) && mayBeCharged(each));
    if (shadowVerdicts.length > 0) {
      waitUntil(this.#chargeShadowRules(shadowVerdicts, costOf).catch(() => {}));
    }
    const charges = responseChargesOf(
      verdicts.filter((each) => !isShadow(each)),
      costOf,
    );
    if (charges.length === 0) return [];
    if (storeFailure) {
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
    return this.#charge([{ verdict: { appliedRule, reserve }, cost }]);
  }

  /** Adds each counter's cost in the store, and returns the quotas. Throws like `charge`. */
  async adjust(ruleCounters: readonly RuleCounter[]): Promise<Quota[]> {
    const now = timeOf(this.#config);
    const tallies = await this.#store.adjust(countersOf(ruleCounters), now);
    return quotasOf(ruleCounters, { admitted: true, tallies, now: now ?? Date.now() });
  }

  /** Charges rules in shadow mode in a separate call. Its failure affects no enforced rule. */
  async #chargeShadowRules(verdicts: readonly RuleVerdict[], costOf: CostOf): Promise<void> {
    const decided = await Promise.all(verdicts.map((each) => each.later ?? [each]));
    const charges = responseChargesOf(decided.flat(), costOf);
    if (charges.length > 0) await this.#charge(charges);
  }

  #charge(charges: readonly ResponseCharge[]): Promise<Quota[]> {
    return this.adjust(charges.flatMap((each) => chargedCountersOf(each, this.#config.prefix)));
  }
}

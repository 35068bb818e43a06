import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { Store } from "../stores/store.ts";
import { type ChargedDecision, type CostOf, ResponseCharger } from "./charge.ts";
import { Clients } from "./clients.ts";
import { type DecideOptions, type Reserve, ruleCountersOf } from "./counters.ts";
import { Decider } from "./decider.ts";
import type { Decision, Limited, Quota } from "./decision.ts";
import { createFallback, type NativeLimiter } from "./fallback.ts";

type LimiterConfig = Pick<Config, "clock" | "prefix" | "timeoutMs">;

/**
 * Decides requests by the rules that apply to them, and charges rules whose cost depends on the
 * response.
 */
export class Limiter {
  /** Reads and changes the stored states of clients. */
  readonly clients: Clients;
  readonly #config: LimiterConfig;
  readonly #decider: Decider;
  readonly #responseCharger: ResponseCharger;

  /** @param nativeLimiter called for rules with `onError: "local"` if the store fails */
  constructor(config: LimiterConfig, store: Store, nativeLimiter?: NativeLimiter) {
    const fallback = createFallback(config, nativeLimiter);
    this.clients = new Clients(config, store);
    this.#config = config;
    this.#decider = new Decider(config, store, fallback);
    this.#responseCharger = new ResponseCharger(config, store, fallback);
  }

  /** Decides a request: see {@link Decider.decide}. */
  decide(
    appliedRules: readonly AppliedRule[],
    options?: DecideOptions,
    spentMs?: number,
  ): Promise<Decision> {
    return this.#decider.decide(appliedRules, options, spentMs);
  }

  /** Denies a request without waiting, if some rules certainly deny it: see {@link Decider.denialOf}. */
  denialOf(appliedRules: readonly AppliedRule[]): Limited | undefined {
    return this.#decider.denialOf(appliedRules);
  }

  /** Charges the rules whose cost depends on the response: see {@link ResponseCharger}. */
  chargeResponse(decision: ChargedDecision, costOf: CostOf): Promise<Quota[]> {
    return this.#responseCharger.charge(decision, costOf);
  }

  /** Settles a reserve that a program has taken: see {@link ResponseCharger}. */
  settle(appliedRule: AppliedRule, reserve: Reserve, cost: number): Promise<Quota[]> {
    return this.#responseCharger.settle(appliedRule, reserve, cost);
  }

  /** Gives quota back, at most as much as was used. Throws like {@link Limiter.chargeResponse}. */
  refund(appliedRule: AppliedRule, quota: number): Promise<Quota[]> {
    return this.#responseCharger.adjust(
      ruleCountersOf(appliedRule, this.#config.prefix, { cost: -quota }),
    );
  }
}

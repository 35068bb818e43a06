import { WorkerEntrypoint, waitUntil } from "cloudflare:workers";
import type { Env } from "../config/bindings.ts";
import type { Config, ConfigInput, RuleNameOf } from "../config/schema.ts";
import { MAX_LIMIT } from "../config/window.ts";
import { logDecision, logUndecided } from "../gateway/log.ts";
import type { DecideOptions } from "../limiter/counters.ts";
import { allWindowsOf } from "../limiter/counters.ts";
import { type Quota, settledVerdictsOf, toUndecided } from "../limiter/decision.ts";
import type { Override } from "../overrides/override.ts";
import { writeUsage } from "../statistics/usage.ts";
import {
  CHARGED_OPTIONS,
  type CheckOptions,
  CLIENT_OPTIONS,
  type ClientOptions,
  checkCost,
  checkOptions,
  type LimitOptions,
} from "./options.ts";
import {
  listOverrides,
  type OverrideOptions,
  type RemoveOverrideOptions,
  removeOverride,
  setOverride,
} from "./overrides.ts";
import {
  CallSlot,
  type LimitGranted,
  type LimitResult,
  type LimitUndecided,
  toLimitResult,
} from "./result.ts";
import {
  adjustedRuleOf,
  configOfService,
  findServiceRule,
  reserveOriginOf,
  SETTLE_OPTIONS,
  type ServiceRule,
  type SettleOptions,
  settlementOf,
} from "./rule.ts";

// These functions are no methods of `WeirService`, because other Workers could call methods over RPC.

/** The result of a call that the rule does not limit. */
const GRANTED: LimitResult = { ok: true, quotas: [] };

/** Decides a call, and takes the quota unless `checkOnly` is set. */
async function decideCall(
  serviceRule: ServiceRule,
  { cost, reserve = false, throws = false }: CheckOptions,
  checkOnly: boolean,
): Promise<LimitResult> {
  const { limiting, limiter, denialLog, control, usage } = serviceRule;
  if (!limiting) {
    if (!checkOnly) control?.record([], undefined, Date.now());
    return GRANTED;
  }
  const options: DecideOptions = { ...(cost !== undefined && { cost }), reserve, checkOnly };
  const decision = await limiter.decide([limiting], options);
  logDecision(decision, denialLog);
  if (!checkOnly) {
    control?.record([limiting], decision, Date.now());
    if (usage) writeUsage(usage, [limiting], decision, waitUntil);
  }
  const slots = decision.outcome === "allowed" ? decision.slots : undefined;
  const slot = slots && { slot: new CallSlot(slots) };
  const verdicts = "verdicts" in decision ? await settledVerdictsOf(decision.verdicts) : [];
  const [verdict] = verdicts;
  // Only a rule that is not enforced has a failure of its own, and such a rule denies no call.
  if (verdict?.failure) return { ok: true, undecided: verdict.failure.cause, ...slot };
  const result = { ...toLimitResult(decision, limiting.rule.name, throws), ...slot } as LimitResult;
  // If this isolate has decided alone, the store has charged nothing, so there is no reserve to settle.
  if (decision.outcome !== "allowed" || !result.ok || !result.quotas) return result;
  const reserved = verdict?.reserve;
  if (!reserved) return result;
  return { ...result, reserved: { ...reserved, ...reserveOriginOf(serviceRule) } };
}

/** Charges a client, even above the limit, or gives quota back. */
async function adjustQuota(
  { configured, limiting }: ServiceRule,
  call: () => Promise<readonly Quota[]>,
): Promise<LimitGranted | LimitUndecided> {
  const { rule } = limiting ?? configured;
  try {
    const quotas = await call();
    return { ok: true, quotas: rule.mode === "shadow" ? [] : quotas };
  } catch (error) {
    const undecided = toUndecided(error, [rule]);
    logUndecided(undecided);
    // An adjustment needs no permission, so the result is `ok` even with `onError: "closed"`.
    return { ok: true, undecided: undecided.cause };
  }
}

/**
 * A rate limiter that other Workers call over a service binding. Extend this class, and export the subclass as an
 * entrypoint of the Worker that has the rules.
 *
 * `exempt` has no effect, because a call has no request, and `match` only on the values for `param:NAME`. A charge
 * that depends on the response (`count`, or `cost: "header:NAME"`) is made at once, because a call has no response
 * either. If the cost has a reserve, the caller settles it with `settle`.
 *
 * With the var `WEIR_MODE`, `limit` and `check` grant every call: `"shadow"` decides and logs, and `"off"` takes no
 * quota. Refunds, `settle`, `getValue` and `reset` work in every mode.
 *
 * Every method throws a `RangeError` for an unknown rule or an invalid cost, and a `TypeError` for an invalid option
 * or a key that does not fit the rule's key.
 *
 * @example
 * export class Limits extends WeirService<typeof config> {
 *   readonly config = config;
 * }
 *
 * // In the Worker that binds this entrypoint as LIMITS:
 * const { ok } = await env.LIMITS.limit("sign-up");
 *
 * @typeParam C the type of the configuration. With `typeof config`, a call with an unknown rule does not compile.
 */
export abstract class WeirService<
  C extends Config | ConfigInput = Config | ConfigInput,
> extends WorkerEntrypoint<Env> {
  /**
   * The configuration that `defineConfig` returned, or the argument of `defineConfig`. An argument is checked at the
   * first call, once for the class. If it has faults, every call throws a `ConfigError` that lists the faults.
   */
  abstract readonly config: C;

  /**
   * Takes quota in all windows of the rule, or in none of them.
   *
   * @example
   * const { ok, retryAfterMs } = await env.LIMITS.limit("reports", { key: account, cost: 5 });
   *
   * @param rule the name of a rule
   * @param options the client, the cost, and the behaviour if too little quota is left
   * @throws {RateLimitError} if `throws` is set and the client is over the limit
   * @throws {Error} if `throws` is set, the store could not decide, and the rule has
   * `onError: "closed"`
   */
  async limit(rule: RuleNameOf<C>, options: LimitOptions = {}): Promise<LimitResult> {
    checkOptions(options, CHARGED_OPTIONS);
    const serviceRule = await findServiceRule(configOfService(this), this.env, rule, options);
    const { cost } = options;
    checkCost(cost, -MAX_LIMIT);
    if (cost !== undefined && cost < 0) {
      const { limiter } = serviceRule;
      return adjustQuota(serviceRule, () => limiter.refund(adjustedRuleOf(serviceRule), -cost));
    }
    const decided = decideCall(serviceRule, options, false);
    // If the caller goes, the decision still ends, so that a slot that is taken too late is given back.
    if (serviceRule.limiting?.windows.at(-1)?.concurrent) waitUntil(decided.catch(() => {}));
    return decided;
  }

  /**
   * Returns the result that `limit` would return, but takes no quota. Another call may take the quota before your
   * next `limit`.
   *
   * @example const { ok } = await env.LIMITS.check("reports", { key: account, cost: 5 });
   *
   * @param rule the name of a rule
   * @param options the client, the cost, and the behaviour if too little quota is left
   * @throws {RateLimitError} if `throws` is set and the client is over the limit
   * @throws {Error} if `throws` is set, the store could not decide, and the rule has `onError: "closed"`
   */
  async check(rule: RuleNameOf<C>, options: CheckOptions = {}): Promise<LimitResult> {
    checkOptions(options, CHARGED_OPTIONS);
    const serviceRule = await findServiceRule(configOfService(this), this.env, rule, options);
    checkCost(options.cost, 0);
    return decideCall(serviceRule, options, true);
  }

  /**
   * Replaces the reserve that `limit` has charged by the quota that was used. Charges an excess even if too little
   * quota is left, so that later calls wait. Gives quota back only in windows that have not ended, and only if no
   * deploy has replaced the counters since. Without a difference, makes no call to the store.
   *
   * @example
   * const { ok, reserved } = await env.LIMITS.limit("tokens", { key: account, cost: 1200 });
   * if (ok && reserved) await env.LIMITS.settle("tokens", { key: account, reserved, used: 950 });
   *
   * @param rule the name of the rule
   * @param options the client, the charge of `limit`, and the used quota
   * @returns a result that is always `ok`; with `undecided` if the call to the store failed
   */
  async settle(rule: RuleNameOf<C>, options: SettleOptions): Promise<LimitResult> {
    checkOptions(options, SETTLE_OPTIONS);
    const serviceRule = await findServiceRule(configOfService(this), this.env, rule, options);
    const { limiter } = serviceRule;
    const { cost, hasEnded } = settlementOf(serviceRule, options);
    const result = await adjustQuota(serviceRule, async () =>
      cost === 0 ? [] : await limiter.settle(adjustedRuleOf(serviceRule), options.reserved, cost),
    );
    return hasEnded ? { ...result, reserveEnded: true } : result;
  }

  /**
   * Returns a client's quota in each window of a rule. Works for a rule in shadow mode too.
   *
   * @example const [{ remaining }] = await env.LIMITS.getValue("reports", { key: account });
   *
   * @param rule the name of a rule
   * @param options the client and its tier
   * @throws {Error} if the store cannot read the counters
   */
  async getValue(rule: RuleNameOf<C>, options: ClientOptions = {}): Promise<Quota[]> {
    checkOptions(options, CLIENT_OPTIONS);
    const { configured, limiting, limiter } = await findServiceRule(
      configOfService(this),
      this.env,
      rule,
      options,
    );
    const counted = limiting ?? configured;
    const enforced = { ...counted, rule: { ...counted.rule, mode: "enforce" } } as const;
    const decision = await limiter.decide([enforced], { cost: 0, checkOnly: true });
    // The counters of an isolate that counts alone lack the quota that the client has used in other isolates.
    const failure = decision.outcome === "undecided" ? decision : decision.storeFailure;
    if (failure) {
      throw new Error(`The rule "${rule}" could not be read: ${failure.cause}, ${failure.detail}.`);
    }
    return "quotas" in decision ? [...decision.quotas] : [];
  }

  /**
   * Removes a client's counts and reservations under a rule, in every tier, and its ban. If the client has an
   * unsettled reserve, its later `settle` gives back quota that later calls have taken.
   *
   * @example await env.LIMITS.reset("reports", { key: account });
   *
   * @param rule the name of a rule
   * @param options the client
   * @throws {Error} if the call to the store failed; it may have reset the counters anyway
   */
  async reset(rule: RuleNameOf<C>, options: Pick<ClientOptions, "key"> = {}): Promise<void> {
    checkOptions(options, CLIENT_OPTIONS);
    const { configured, limiter } = await findServiceRule(
      configOfService(this),
      this.env,
      rule,
      options,
    );
    const windows = allWindowsOf(configured.rule);
    await limiter.clients.reset({ ...configured, windows });
  }

  /**
   * Changes the effect of a rule, for one client or for all clients, until a time. The override holds in this isolate
   * at once, and usually in all isolates within 15 seconds. It replaces an earlier override of the same rule and
   * client. Needs the binding `WEIR_CONTROL`.
   *
   * @example
   * await env.LIMITS.override("api", {
   *   key: { ip: "203.0.113.7" },
   *   effect: { kind: "factor", factor: 5 },
   *   expiresIn: "2h",
   *   reason: "A customer imports data",
   * });
   *
   * @param rule the name of a rule
   * @param options the client, the effect, the end and the reason
   * @returns the override
   * @throws {Error} if there is no binding, if there are 1,000 overrides, or if the control object fails
   */
  async override(rule: RuleNameOf<C>, options: OverrideOptions): Promise<Override> {
    return setOverride(configOfService(this), this.env, rule, options);
  }

  /**
   * Removes an override before it ends. Needs the binding `WEIR_CONTROL`.
   *
   * @example
   * await env.LIMITS.removeOverride("api", { key: { ip: "203.0.113.7" }, reason: "Import done" });
   *
   * @param rule the name of a rule, which the configuration may have lost since
   * @param options the reason, and the client unless the override is for all clients. If the rule is missing, name
   * the client by its identity
   * @returns the removed override; undefined if there was none
   * @throws {Error} if there is no binding, or if the control object fails
   */
  async removeOverride(
    rule: RuleNameOf<C>,
    options: RemoveOverrideOptions,
  ): Promise<Override | undefined> {
    return removeOverride(configOfService(this), this.env, rule, options);
  }

  /**
   * Returns all overrides that have not ended, the newest first. Needs the binding `WEIR_CONTROL`.
   *
   * @throws {Error} if there is no binding, or if the control object fails
   */
  async overrides(): Promise<readonly Override[]> {
    return listOverrides(this.env);
  }
}

import type { Env } from "../config/bindings.ts";
import type { Cost } from "../config/cost.ts";
import { ConfigError, faultsOfFaultyConfig, isConfig, toConfig } from "../config/define.ts";
import type { NodeGlobals } from "../config/faults.ts";
import { isRecord } from "../config/fields.ts";
import { type Rule, shadowed } from "../config/rule.ts";
import type { Config, ConfigInput } from "../config/schema.ts";
import { MAX_LIMIT } from "../config/window.ts";
import type { ControlLink } from "../control/control-link.ts";
import { createCustomContext, sharedLimiter } from "../entry/isolate.ts";
import { counterNameOf, dependsOnResponse, isSettled, type Reserve } from "../limiter/counters.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { listNames } from "../overrides/override-input.ts";
import { keysOf } from "../request/client-limits.ts";
import { identifyLimitKey } from "../request/limit-key.ts";
import { type AppliedRule, tierNamed } from "../request/rule-applier.ts";
import { CLIENT_OPTIONS, type ClientOptions, checkCost } from "./options.ts";

/**
 * A rule that is applied to the client in a program's call, and the limiter that decides this call.
 */
export interface ServiceRule {
  /** The rule as configured, without overrides, because reserves and resets do not depend on overrides. */
  readonly configured: AppliedRule;
  /**
   * The rule with the overrides of the rule and of the client. Undefined if the rule does not limit the client: the
   * rule or the deployment is off, or the client has no limit.
   */
  readonly limiting: AppliedRule | undefined;
  readonly limiter: Limiter;
  /** The statistics and the overrides; undefined if the Worker has no control object. */
  readonly control: ControlLink | undefined;
  /** The data set of the use by client; undefined without the field `usage`. */
  readonly usage: AnalyticsEngineDataset | undefined;
  /** The option `tier` of the call. */
  readonly tier: string | undefined;
  /** The first part of the counters' keys. */
  readonly prefix: string;
  /** The maximum number of log lines about denials in each second. */
  readonly denialLog: number;
}

/**
 * Looks up a rule by its name, and applies it to a client.
 *
 * @throws {RangeError} if the configuration has no such rule
 * @throws {TypeError} if the option `key` does not fit the rule's key
 */
export async function findServiceRule(
  config: Config,
  env: Env,
  name: string,
  { key, tier }: ClientOptions,
): Promise<ServiceRule> {
  const rule = findRule(config, name);
  const shared = sharedLimiter(config, env);
  const { limiter, mode, prefix, keySecret, control, overrides, limits, usage } = shared;
  const loading = control?.loadIfStale(Date.now());
  if (loading) await loading;
  const { identity, values } = await identifyLimitKey(rule, key, config, keySecret);
  const apply = (each: Rule): AppliedRule => ({
    rule: withoutHttp(each),
    ...tierNamed(each, tier),
    identity,
  });
  const active = overrides.activeRuleOf(rule);
  const client = { identity, keys: keysOf(rule.key, values) };
  const context = createCustomContext(env, undefined);
  let limiting = active && apply(active);
  if (limiting && !overrides.needsNoNumbers(limiting.rule, identity)) {
    limiting = await limits.withNumbers(limiting, client, context);
  }
  limiting &&= overrides.clientOf(limiting);
  const { denialLog } = config;
  return {
    configured: apply(mode === "shadow" ? shadowed(rule) : rule),
    limiting,
    limiter,
    control,
    usage,
    tier,
    prefix,
    denialLog,
  };
}

/** @throws {RangeError} if the configuration has no such rule */
export function findRule({ rules }: Config, name: string): Rule {
  const rule = rules.find((each) => each.name === name);
  if (rule) return rule;
  const names = listNames(rules.map((each) => each.name));
  throw new RangeError(`There is no rule "${name}". The rules are: ${names}.`);
}

/**
 * Returns the rule whose counters a refund or a settlement changes: the rule with the overrides, so that the returned
 * quotas include them. A limit of 0 can have other counters than the configured limit, so the configured rule is then
 * returned.
 */
export function adjustedRuleOf({ configured, limiting }: ServiceRule): AppliedRule {
  const hasSameCounters = limiting?.windows.every(
    ({ limit, concurrent }) => concurrent || limit > 0,
  );
  return limiting && hasSameCounters ? limiting : configured;
}

/**
 * Returns the rule with a constant cost and without `count`, because a call has no request and no response. If the
 * rule has a reserve, the caller settles the constant cost. Calls and requests share their counters. So if requests
 * take no leases, because the response determines their cost, calls take no leases either.
 */
function withoutHttp(rule: Rule): Rule {
  const { cost } = rule;
  const constant = constantCost(cost);
  const hasReserve = typeof cost !== "number" && isSettled({ ...rule, count: undefined });
  return {
    ...rule,
    cost: hasReserve ? { ...cost, before: constant } : constant,
    count: undefined,
    lease: rule.lease && !dependsOnResponse(rule),
  };
}

/** Returns the cost of a call without the option `cost`. */
function constantCost(cost: Cost): number {
  if (typeof cost === "number") return cost;
  return typeof cost.before === "number" ? cost.before : (cost.default ?? 1);
}

/** Options of the method `settle` of `WeirService`. `key` and `tier` must be the same as for `limit`. */
export interface SettleOptions extends ClientOptions {
  /** The field `reserved` of the result of `limit`. Settle it once. */
  readonly reserved: Reserve;
  /** The quota that was used in the end, a whole number from 0 to 999,999,999,999,999. */
  readonly used: number;
}

export const SETTLE_OPTIONS = { ...CLIENT_OPTIONS, reserved: "any", used: "any" } as const;

/**
 * The number of characters in the field `client` of a reserve. Four characters have 24 bits: enough to notice a
 * mistake, and too few to identify the client.
 */
const CLIENT_DIGITS = 4;

/** Returns the fields that identify the charged counters in a program's reserve. */
export function reserveOriginOf({ configured, tier, prefix }: ServiceRule) {
  const { rule, windows, identity } = configured;
  return {
    client: identity.slice(0, CLIENT_DIGITS),
    rule: rule.name,
    ...(tier !== undefined && { tier }),
    counters: [prefix, ...windows.map(counterNameOf)].join(),
  } satisfies Partial<Reserve>;
}

/**
 * Checks the options of a call, and returns the quota to charge in addition to the reserve.
 *
 * @returns `cost`, which is negative if quota is given back; and `hasEnded`: whether nothing is given back, because a
 * deploy has replaced the charged counters
 * @throws {RangeError} if the rule has no reserve, or if `used` is not a whole number
 * @throws {TypeError} if `reserved` is not the reserve of a call with this rule, tier and key
 */
export function settlementOf(
  serviceRule: ServiceRule,
  { reserved, used }: SettleOptions,
): { cost: number; hasEnded: boolean } {
  const { rule, windows } = serviceRule.configured;
  if (!isSettled(rule) || typeof rule.cost === "number") {
    throw new RangeError(
      `The rule "${rule.name}" has no cost with a reserve, so it has nothing to settle.`,
    );
  }
  if (!isReserve(reserved)) {
    throw new TypeError(
      "The option reserved must be the field reserved of a result of limit, for the same rule and tier.",
    );
  }
  const current = reserveOriginOf(serviceRule);
  // The reserve of an earlier version of Weir may lack these fields.
  const { rule: name = current.rule, client = current.client } = reserved;
  if (name !== current.rule) throw belongsTo("rule", "the name of the rule");
  if (client !== current.client) throw belongsTo("client", "the key");
  const { counters = current.counters } = reserved;
  const hasOtherCounters = counters !== current.counters;
  // Tiers whose windows have the same lengths share their counters.
  if (hasOtherCounters && reserved.tier !== serviceRule.tier) throw belongsTo("tier", "the tier");
  if (used === undefined)
    throw new TypeError("The option used is missing: the quota that was used.");
  checkCost(used, 0);
  const hasEnded = hasOtherCounters || !fits(reserved, windows.length, rule.shards);
  const cost = used - reserved.cost;
  return { cost: hasEnded ? Math.max(0, cost) : cost, hasEnded };
}

function belongsTo(what: string, option: string): TypeError {
  return new TypeError(
    `The option reserved belongs to another ${what}. Pass ${option} of the call limit to settle.`,
  );
}

/** Whether the counters that a reserve has charged still exist. */
function fits({ windows, shards }: Reserve, windowCount: number, shardCount: number): boolean {
  if (windows.length !== windowCount || (shards !== undefined) !== shardCount > 1) return false;
  return shards?.every((shard) => shard < shardCount) ?? true;
}

function isReserve(value: unknown): value is Reserve {
  if (!isRecord(value) || !isInteger(value.cost, 0, MAX_LIMIT)) return false;
  const { windows, shards } = value;
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number;
  if (!isListOf(windows, MIN_SAFE_INTEGER) || windows.length === 0) return false;
  return shards === undefined || (isListOf(shards, 0) && shards.length === windows.length);

  function isListOf(list: unknown, min: number): list is number[] {
    return Array.isArray(list) && list.every((each) => isInteger(each, min, MAX_SAFE_INTEGER));
  }
}

function isInteger(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** The checked configurations of classes with a plain object in the field `config`. */
const plainConfigs = new WeakMap<object, Config>();

/**
 * Returns the checked configuration of a service. A plain object is checked at the first call, once for the class,
 * because each call has a new instance, which may create a new object with the same content.
 *
 * @throws {ConfigError} if the configuration has faults, at every call
 */
export function configOfService(service: { readonly config: Config | ConfigInput }): Config {
  const { config: given, constructor: serviceClass } = service;
  let config = isConfig(given) ? given : plainConfigs.get(serviceClass);
  if (!config) {
    config = toConfig(given);
    plainConfigs.set(serviceClass, config);
  }
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV === "development") {
    const faults = faultsOfFaultyConfig(config);
    if (faults) throw new ConfigError(faults);
  }
  return config;
}

import type { Cost } from "./config/cost.ts";
import { shadowed } from "./config/deployment-mode.ts";
import type { Env } from "./config/env.ts";
import type { Rule, Window } from "./config/rule.ts";
import type { Config } from "./config/schema.ts";
import { formatWindow } from "./config/windows.ts";
import type { ControlLink } from "./control/control-link.ts";
import { dependsOnResponse, isSettled, rollsOver } from "./limiter/counters.ts";
import type { Limiter } from "./limiter/limiter.ts";
import type { AppliedRule } from "./request/applied-rule.ts";
import { identityOfLimitKey } from "./request/limit-key.ts";
import type { ClientOptions } from "./service-options.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/**
 * A rule that is applied to the client in a program's call, and the limiter that decides this call.
 */
export interface ServiceRule {
  /** The rule as the configuration has it. Reserves and resets do not depend on overrides. */
  readonly configured: AppliedRule;
  /**
   * The rule with the overrides of the rule and of the client. Undefined if the rule does not limit the
   * client: the rule or the deployment is off, or the client has no limit.
   */
  readonly limiting: AppliedRule | undefined;
  readonly limiter: Limiter;
  /** The statistics and the overrides; undefined if the Worker has no control object. */
  readonly control: ControlLink | undefined;
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
  const { limiter, mode, prefix, keySecret, control } = sharedLimiter(config, env);
  const loading = control?.loadIfStale(Date.now());
  if (loading) await loading;
  const identity = await identityOfLimitKey(rule, key, config, keySecret);
  const apply = (each: Rule): AppliedRule => ({
    rule: withoutHttp(mode === "shadow" ? shadowed(each) : each),
    windows: (tier !== undefined && each.tiers?.windows.get(tier)) || each.windows,
    identity,
  });
  const changed = control ? control.overrides.ruleOf(rule) : rule;
  const applied = changed && mode !== "off" ? [apply(changed)] : [];
  const [limiting] = control ? control.overrides.clientsOf(applied) : applied;
  const { denialLog } = config;
  return { configured: apply(rule), limiting, limiter, control, tier, prefix, denialLog };
}

/** @throws {RangeError} if the configuration has no such rule */
export function findRule({ rules }: Config, name: string): Rule {
  const rule = rules.find((each) => each.name === name);
  if (rule) return rule;
  throw new RangeError(`There is no rule "${name}". ${listOfNames(rules)}`);
}

/**
 * Returns the rule whose counters a refund or a settlement changes. It has the overrides, so that the
 * returned quotas show them. But a limit of 0 can have other counters than the configured limit.
 */
export function adjustedRuleOf({ configured, limiting }: ServiceRule): AppliedRule {
  const hasSameCounters = limiting?.windows.every(({ limit }) => limit > 0);
  return limiting && hasSameCounters ? limiting : configured;
}

/**
 * Returns the windows of a rule and of all its tiers. If several windows share a counter, returns
 * only one of them.
 */
export function allWindowsOf({ windows, tiers }: Rule): Window[] {
  const all = [...windows, ...(tiers ? [...tiers.windows.values()].flat() : [])];
  return [...new Map(all.map((window) => [counterNameOf(window), window])).values()];
}

/**
 * Returns a text that differs between the counters of a rule. Windows of the same length share one
 * counter, unless one of them rolls over and the other does not.
 */
export function counterNameOf(window: Window): string {
  return formatWindow(window) + (rollsOver(window) ? "+" : "");
}

/**
 * Returns the rule with a constant cost and without `count`, because a call has no request and no
 * response. If the rule has a reserve, the caller settles the constant cost. If requests take no leases,
 * because the response determines their cost, calls take none either: they share the counters.
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

/**
 * The maximum number of rule names in an error message. This number is enough to notice a
 * misspelling.
 */
const MAX_NAMES = 20;

function listOfNames(rules: readonly Rule[]): string {
  const names = rules.slice(0, MAX_NAMES).map(({ name }) => name);
  const omittedCount = rules.length - names.length;
  if (names.length === 0) return "The configuration has no rules.";
  return `The rules are: ${names.join(", ")}${omittedCount > 0 ? `, and ${omittedCount} more` : ""}.`;
}

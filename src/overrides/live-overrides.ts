import type { DeploymentMode } from "../config/bindings.ts";
import { type Rule, shadowed, type Window } from "../config/rule.ts";
import type { RuleMatch } from "../request/matcher.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import {
  type ClientOverride,
  emptyWindows,
  limitedWindows,
  type OverrideUpdate,
  overrideId,
  type RuleOverride,
  scaledWindows,
} from "./override.ts";

/** Maps the windows that a rule's override has changed to the windows of the configuration. */
const configured = new WeakMap<readonly Window[], readonly Window[]>();

/** Returns the windows of the configuration, without the factor of a rule's override. */
export function configuredWindows(windows: readonly Window[]): readonly Window[] {
  return configured.get(windows) ?? windows;
}

/** The override of one rule in this isolate. */
class RuleChange {
  readonly override: RuleOverride;
  readonly #deploymentMode: DeploymentMode;
  /**
   * The changed rules, by the original rules. Gateways, middlewares and services have different objects for the same
   * rule. Each object is changed once, because caches recognise a rule by its object.
   */
  readonly #changed = new WeakMap<Rule, Rule>();

  constructor(override: RuleOverride, deploymentMode: DeploymentMode) {
    this.override = override;
    this.#deploymentMode = deploymentMode;
  }

  /** Returns the rule with the override; undefined if the rule is off. */
  changedRule(rule: Rule): Rule | undefined {
    if (this.override.effect.mode === "off") return undefined;
    const existing = this.#changed.get(rule);
    if (existing) return existing;
    const changed = this.#withMode(this.#withFactor(rule));
    this.#changed.set(rule, changed);
    return changed;
  }

  /**
   * Returns the rule with the override's mode. While the deployment's mode is `shadow`, the rule stays in shadow
   * mode.
   */
  #withMode(rule: Rule): Rule {
    const { mode } = this.override.effect;
    if (mode === "shadow") return shadowed(rule);
    if (mode === "enforce" && this.#deploymentMode === "enforce") return { ...rule, mode };
    return rule;
  }

  #withFactor(rule: Rule): Rule {
    const { factor } = this.override.effect;
    if (factor === undefined) return rule;
    const scale = (windows: readonly Window[]) => {
      // The numbers of a client are not known yet: see `#withFactor` of the overrides.
      if (windows.some(({ from }) => from)) return windows;
      const result = scaledWindows(windows, factor);
      configured.set(result, windows);
      return result;
    };
    const { tiers } = rule;
    const tierWindows = [...(tiers?.windows ?? [])].map(
      ([name, windows]) => [name, scale(windows)] as const,
    );
    return {
      ...rule,
      windows: scale(rule.windows),
      tiers: tiers && { ...tiers, windows: new Map(tierWindows) },
    };
  }
}

/**
 * Returns an applied rule with the override of its client.
 *
 * @returns undefined if the rule does not count the client
 */
function changedByClient(
  appliedRule: AppliedRule,
  { effect, expiresAt }: ClientOverride,
): AppliedRule | undefined {
  // The client's override replaces the factor of the rule's override.
  const windows = configuredWindows(appliedRule.windows);
  switch (effect.kind) {
    case "limits":
      return {
        ...appliedRule,
        windows: limitedWindows(windows, effect.limits, appliedRule.declared),
      };
    case "factor":
      return { ...appliedRule, windows: scaledWindows(windows, effect.factor) };
    case "unlimited":
      return undefined;
    case "blocked":
      return { ...appliedRule, windows: emptyWindows(windows), blockedUntil: expiresAt };
    default:
      // During a deploy, a newer version may have set an override that this version does not know.
      effect satisfies never;
      return appliedRule;
  }
}

/**
 * The overrides in this isolate, and their effect on requests. An override ends by this isolate's clock, without a
 * new load.
 */
export class LiveOverrides {
  readonly #deploymentMode: DeploymentMode;
  #rules: ReadonlyMap<string, RuleChange> = new Map();
  /** The overrides of clients by their ids. */
  #clients: ReadonlyMap<string, ClientOverride> = new Map();
  #version = 0;

  /** @param deploymentMode unless this is `enforce`, no override enforces a rule */
  constructor(deploymentMode: DeploymentMode = "enforce") {
    this.#deploymentMode = deploymentMode;
  }

  /** Whether overrides have any effect. With the mode `off`, they have none, because no rule applies. */
  get haveEffect(): boolean {
    return this.#deploymentMode !== "off";
  }

  /** The version of this isolate's overrides; 0 if it has loaded none. */
  get version(): number {
    return this.#version;
  }

  /** The number of overrides, including ended ones. */
  get size(): number {
    return this.#rules.size + this.#clients.size;
  }

  /**
   * Replaces all overrides by the overrides of an answer.
   *
   * @param since the version of this isolate's overrides at the time of the call. If another answer has arrived
   * since, an older answer changes nothing
   */
  update({ version, all }: OverrideUpdate, since = this.#version): void {
    if (since !== this.#version && version < this.#version) return;
    const rules = new Map<string, RuleChange>();
    const clients = new Map<string, ClientOverride>();
    for (const override of all) {
      if (override.client === undefined) rules.set(override.rule, this.#changeOf(override));
      else clients.set(overrideId(override), override);
    }
    this.#rules = rules;
    this.#clients = clients;
    this.#version = version;
  }

  /** Returns the matches with the overrides of their rules. Omits rules that are off. */
  matchesOf(matches: readonly RuleMatch[], now = Date.now()): readonly RuleMatch[] {
    if (this.#rules.size === 0) return matches;
    return changedItems(matches, (match) => {
      const rule = this.ruleOf(match.rule, now);
      return rule === match.rule ? match : rule && { ...match, rule };
    });
  }

  /** Returns the rule in the deployment's mode and with its override; undefined if it is off. */
  activeRuleOf(rule: Rule): Rule | undefined {
    if (this.#deploymentMode === "off") return undefined;
    return this.ruleOf(this.#deploymentMode === "shadow" ? shadowed(rule) : rule);
  }

  /** Returns the rule with its override, as the same object each time; undefined if the rule is off. */
  ruleOf(rule: Rule, now = Date.now()): Rule | undefined {
    const change = this.#rules.get(rule.name);
    return !change || change.override.expiresAt <= now ? rule : change.changedRule(rule);
  }

  /** Returns the applied rules with the overrides of their clients. Omits rules without a limit. */
  clientsOf(appliedRules: readonly AppliedRule[], now = Date.now()): readonly AppliedRule[] {
    if (this.size === 0) return appliedRules;
    return changedItems(appliedRules, (appliedRule) => {
      const { pendingRules } = appliedRule;
      if (!pendingRules) return this.clientOf(appliedRule, now);
      const changed = pendingRules.then((identified) => this.clientsOf(identified));
      // The limiter reports a rejection of `changed`. This `catch` is for requests that the limiter never gets.
      changed.catch(() => {});
      return { ...appliedRule, pendingRules: changed };
    });
  }

  /** Returns an applied rule with the override of its client; undefined if the client has no limit. */
  clientOf(appliedRule: AppliedRule, now = Date.now()): AppliedRule | undefined {
    const { rule, identity } = appliedRule;
    const override = this.#clients.get(overrideId({ rule: rule.name, client: identity }));
    if (!override || override.expiresAt <= now) return this.#withFactor(appliedRule, now);
    return changedByClient(appliedRule, override);
  }

  /** Whether an override decides for the client without its own numbers: by a block, or by lifting all limits. */
  needsNoNumbers({ name }: Rule, client: string, now = Date.now()): boolean {
    const { effect, expiresAt = 0 } = this.#clients.get(overrideId({ rule: name, client })) ?? {};
    return (effect?.kind === "blocked" || effect?.kind === "unlimited") && now < expiresAt;
  }

  /** Applies the factor of a rule's override to limits that differ by client. */
  #withFactor(appliedRule: AppliedRule, now: number): AppliedRule {
    const { rule, windows } = appliedRule;
    const { effect, expiresAt = 0 } = this.#rules.get(rule.name)?.override ?? {};
    if (effect?.factor === undefined || expiresAt <= now) return appliedRule;
    if (!windows.some(({ from }) => from)) return appliedRule;
    return { ...appliedRule, windows: scaledWindows(windows, effect.factor) };
  }

  /** Keeps the change of an unchanged override, because caches recognise a rule by its object. */
  #changeOf(override: RuleOverride): RuleChange {
    const before = this.#rules.get(override.rule);
    const isUnchanged = before && JSON.stringify(before.override) === JSON.stringify(override);
    return isUnchanged ? before : new RuleChange(override, this.#deploymentMode);
  }
}

/**
 * Returns the items that `change` returns, without undefined ones. If all items stay unchanged, returns the given
 * list, because most requests have no override.
 */
function changedItems<Item>(
  items: readonly Item[],
  change: (item: Item) => Item | undefined,
): readonly Item[] {
  let changed: Item[] | undefined;
  for (const [index, item] of items.entries()) {
    const result = change(item);
    if (result === item && !changed) continue;
    changed ??= items.slice(0, index);
    if (result !== undefined) changed.push(result);
  }
  return changed ?? items;
}

import type { DeploymentMode } from "../config/deployment-mode.ts";
import { shadowed } from "../config/deployment-mode.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { RuleEffect } from "./override.ts";
import { scaledWindows } from "./override-windows.ts";

/** The windows of a configuration, by the windows that a rule's override has derived from them. */
const configured = new WeakMap<readonly Window[], readonly Window[]>();

/** Returns the windows as the configuration has them, without the factor of a rule's override. */
export function configuredWindows(windows: readonly Window[]): readonly Window[] {
  return configured.get(windows) ?? windows;
}

/** The override of one rule in this isolate. */
export class RuleChange {
  readonly expiresAt: number;
  readonly #effect: RuleEffect;
  readonly #deploymentMode: DeploymentMode;
  /**
   * The changed rules. Gateways, middlewares and services have different objects for the same rule. Each is
   * changed once, because caches recognise a rule by its object.
   */
  readonly #changed = new WeakMap<Rule, Rule>();

  constructor(effect: RuleEffect, expiresAt: number, deploymentMode: DeploymentMode) {
    this.#effect = effect;
    this.expiresAt = expiresAt;
    this.#deploymentMode = deploymentMode;
  }

  /** Returns the rule as the override changes it; undefined if the rule is off. */
  changedRule(rule: Rule): Rule | undefined {
    if (this.#effect.mode === "off") return undefined;
    const existing = this.#changed.get(rule);
    if (existing) return existing;
    const changed = this.#withMode(this.#withFactor(rule));
    this.#changed.set(rule, changed);
    return changed;
  }

  /** In a deployment whose mode is `shadow`, every rule stays in shadow mode. */
  #withMode(rule: Rule): Rule {
    const { mode } = this.#effect;
    if (mode === "shadow") return shadowed(rule);
    if (mode === "enforce" && this.#deploymentMode === "enforce") return { ...rule, mode };
    return rule;
  }

  #withFactor(rule: Rule): Rule {
    const { factor } = this.#effect;
    if (factor === undefined) return rule;
    const scale = (windows: readonly Window[]) => {
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

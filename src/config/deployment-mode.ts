import { MODE_VAR } from "./binding-names.ts";
import type { Env } from "./env.ts";
import type { Rule } from "./rule.ts";

/** The values of the var {@link MODE_VAR}. */
export const DEPLOYMENT_MODES = ["enforce", "shadow", "off"] as const;

/**
 * What a deployment does with all rules. `enforce`: each rule has its own mode. `shadow`: every rule
 * is in shadow mode. `off`: no rule applies.
 */
export type DeploymentMode = (typeof DEPLOYMENT_MODES)[number];

/**
 * Reads the mode of a deployment. Upper case is accepted, because the var is often set in a hurry.
 *
 * @returns undefined if the var has another value. Limits then stay enforced: a misspelt word must
 * not turn them off
 */
export function readDeploymentMode(env: Env): DeploymentMode | undefined {
  const value = env[MODE_VAR];
  const word = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (word === undefined || word === "") return "enforce";
  return DEPLOYMENT_MODES.find((mode) => mode === word);
}

/** Returns the rules as a deployment applies them. */
export function rulesInMode(rules: readonly Rule[], mode: DeploymentMode): readonly Rule[] {
  if (mode === "off") return [];
  return mode === "shadow" ? rules.map(shadowed) : rules;
}

/** Returns the rule in shadow mode. Neither clients nor the origin see anything of such a rule. */
export function shadowed(rule: Rule): Rule {
  return { ...rule, mode: "shadow", tellOrigin: false };
}

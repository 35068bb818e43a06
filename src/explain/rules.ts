import { costBefore } from "../limiter/counters.ts";
import { type Override, overrideId } from "../overrides/override.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { explainCounters, explainNewBan } from "./counters.ts";
import type { ExplainedRule } from "./explanation.ts";
import type { IdentifiedClient } from "./identified-request.ts";
import type { ImaginedDecision } from "./imagined-decision.ts";
import type { MatchedRule } from "./matching.ts";

/**
 * Puts the explanation of a rule together.
 *
 * @param client undefined if the rule does not match
 * @param imagined undefined if no rule applies
 * @param overrides the overrides by their ids
 */
export function explainedRule(
  { rule, active, conditions, why }: MatchedRule,
  client: IdentifiedClient | undefined,
  imagined: ImaginedDecision | undefined,
  overrides: ReadonlyMap<string, Override>,
): ExplainedRule {
  const identity = client?.identity;
  const override =
    (identity === undefined
      ? undefined
      : overrides.get(overrideId({ rule: rule.name, client: identity }))) ??
    overrides.get(overrideId({ rule: rule.name }));
  const base: Omit<ExplainedRule, "applies" | "why"> = {
    rule: rule.name,
    mode: active?.mode ?? "off",
    conditions: [...conditions, ...(client?.conditions ?? [])],
    key: client?.key ?? [],
    ...(identity !== undefined && { client: identity }),
    ...(override && { override }),
  };
  const applied = client?.applied;
  if (!applied || !imagined) {
    return { ...base, applies: false, why: why || whyNotApplied(client) };
  }
  return {
    ...base,
    applies: true,
    why: whyApplied(applied),
    ...(client.tier !== undefined && { tier: client.tier }),
    cost: applied.cost ?? costBefore(applied.rule.cost),
    costSource: client.costSource,
    ...stateOf(applied, imagined),
  };
}

function whyNotApplied(client: IdentifiedClient | undefined): string {
  if (client?.identity !== undefined) return "An override exempts the client.";
  const field = client?.conditions.at(-1)?.field ?? "exempt";
  return `The request fulfils exempt: ${field.slice("exempt.".length)}.`;
}

function whyApplied({ rule: { mode }, blockedUntil }: AppliedRule): string {
  const matches = mode === "enforce" ? "It matches." : `It matches, with mode: "${mode}".`;
  return blockedUntil === undefined ? matches : `${matches} An override blocks the client.`;
}

/** Returns the fields of a rule that depend on the store. */
function stateOf(
  applied: AppliedRule,
  { states, store, exceeded, mayDiffer }: ImaginedDecision,
): Partial<ExplainedRule> {
  const exceeds = applied.windows.some(({ policy }) => exceeded.has(policy));
  const state = states.get(applied);
  if (!state || !store) return { exceeds, quotas: [] };
  const newBan = explainNewBan(applied, state.counters, store);
  return {
    exceeds,
    quotas: state.quotas,
    counters: explainCounters(applied, state.counters, store),
    ...(mayDiffer.has(applied) && applied.blockedUntil === undefined && { mayDiffer: true }),
    banMs: state.banMs,
    ...(newBan && { newBan }),
  };
}

import type { LogFacts } from "../logs/log-request.ts";
import type { ReplayNote } from "../replay/replay-engine.ts";
import { cureText, type UnmetNeed, unmetNeedsOf } from "../replay/rule-needs.ts";
import type { RequestedRule } from "./requested-rule.ts";

/** Whether a log suffices for a rule. */
export interface LogNeeds {
  /** What the log lacks, with the cures; undefined if it suffices. */
  readonly refusal: string | undefined;
  /** Notes about values that count as absent. */
  readonly notes: readonly ReplayNote[];
}

/** Compares what a log states with what the match and the key of a rule need. */
export function logNeeds(
  { rule }: RequestedRule,
  facts: LogFacts,
  missingAsAbsent: boolean,
): LogNeeds {
  const needs = unmetNeedsOf({ ...rule, tiers: undefined, cost: 1, count: undefined }, facts);
  const refused = needs.filter(({ canBeAbsent }) => !missingAsAbsent || !canBeAbsent);
  return {
    refusal: refused.length > 0 ? refused.map(refusalOf).join("\n") : undefined,
    notes: needs.map(({ reason }) => ({
      code: "treated-as-absent",
      text: `${reason} All requests count as if they did not have it.`,
    })),
  };
}

function refusalOf(need: UnmetNeed): string {
  const cure = cureText(need);
  if (cure === undefined) return need.reason;
  return `${need.reason} ${cure.charAt(0).toUpperCase()}${cure.slice(1)}.`;
}

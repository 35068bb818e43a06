import type { LogFacts } from "../logs/log-request.ts";
import type { ReplayNote } from "../replay/replay-engine.ts";
import { type UnmetNeed, unmetNeedsOf } from "../replay/rule-needs.ts";
import { RefusedOption } from "./refused-option.ts";
import type { RequestedRule } from "./requested-rule.ts";

/**
 * Checks that the log states what the rule's match and key need.
 *
 * @returns notes about values that count as absent
 * @throws {RefusedOption} with the cures, if the log lacks something
 */
export function checkLogNeeds(
  { rule }: RequestedRule,
  facts: LogFacts,
  missingAsAbsent: boolean,
): ReplayNote[] {
  const { match, key, ...others } = rule;
  const counted = { ...others, match, key, tiers: undefined, cost: 1, count: undefined };
  const needs = unmetNeedsOf(counted, facts);
  const refused = needs.filter(({ canBeAbsent }) => !missingAsAbsent || !canBeAbsent);
  if (refused.length > 0) throw new RefusedOption(refused.map(refusal).join("\n"));
  return needs.map(({ reason }) => ({
    code: "treated-as-absent",
    text: `${reason} All requests count as if they did not have it.`,
  }));
}

function refusal({ reason, cure, canBeAbsent }: UnmetNeed): string {
  const cures = [cure, canBeAbsent && "--missing-as-absent"].filter(Boolean);
  return cures.length === 0 ? reason : `${reason} Add ${cures.join(" or ")}.`;
}

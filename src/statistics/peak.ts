import type { Quota } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { RuleSums } from "./sums.ts";

/**
 * Raises the peak of a rule to the largest part of a limit that the quotas of a decision show as used.
 *
 * The quotas of a rule follow one another, mostly in the order of the rules. So the search for them
 * begins after those of the rule before, and takes time in proportion to the number of quotas.
 *
 * @param start the position at which the quotas of the rule most likely begin
 * @returns the position after the quotas of the rule
 */
export function raisePeak(
  sums: RuleSums,
  { rule, windows }: AppliedRule,
  quotas: readonly Quota[],
  start: number,
): number {
  // The quotas of rules in shadow mode are not in the decision.
  if (rule.mode === "shadow") return start;
  let next = start;
  for (const { policy } of windows) {
    const position = positionOf(policy, quotas, next);
    if (position < 0) continue;
    next = position + 1;
    const used = usedPart(quotas[position] as Quota, rule.shards);
    if (used > sums.peak) sums.peak = used;
  }
  return next;
}

function positionOf(policy: string, quotas: readonly Quota[], start: number): number {
  for (let i = start; i < quotas.length; i++) {
    if (quotas[i]?.policy === policy) return i;
  }
  for (let i = 0; i < start; i++) {
    if (quotas[i]?.policy === policy) return i;
  }
  return -1;
}

/**
 * Returns the used part of a limit, from 0 to 1. Quota that rolled over is in addition to the limit, so
 * while any of it is left, no part of the limit is used.
 *
 * @param shards the rule's number of shards. `remaining` is then the quota left in one of them
 */
function usedPart({ violated, limit, remaining }: Quota, shards: number): number {
  if (violated) return 1;
  const used = limit - remaining * shards;
  return used > 0 ? used / limit : 0;
}

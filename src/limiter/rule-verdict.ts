import { windowAt, windowEndingNear } from "../engine/counter.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import type { Answer } from "../stores/store.ts";
import type { RuleCounter } from "./counters.ts";
import type { Reserve } from "./reserves.ts";
import { costBefore, dependsOnResponse, isSettled } from "./rule-cost.ts";
import type { ShardPair } from "./shards.ts";

/**
 * What one rule alone says about a request, whatever its mode, and what the decision has charged under
 * it. Only a rule that admits the request is charged for the response.
 */
export interface RuleVerdict {
  readonly appliedRule: AppliedRule;
  /**
   * `denied`: the rule denies the request, or would deny it if it were enforced. `blocked`: an operator
   * has blocked the client under the rule.
   */
  readonly says: "admitted" | "denied" | "undecided" | "blocked";
  /** The shards that have decided; undefined if the rule has no shards. */
  readonly shards?: ShardPair;
  /** The quota that was charged before the response; undefined if there is none to settle. */
  readonly reserve?: Reserve;
  /**
   * Set only if the rule is in shadow mode and is decided later. It resolves to the verdict, or to an
   * empty list if the request is exempt, and never rejects. Until then, the rule is `undecided`.
   */
  readonly later?: Promise<readonly RuleVerdict[]>;
}

const NO_VERDICTS: readonly RuleVerdict[] = [];

/**
 * Returns the verdict of each rule of a group whose cost depends on the response. No other rule is
 * charged later.
 *
 * @param ruleCounters the counters of a rule follow one another, one for each window
 */
export function verdictsOf(
  ruleCounters: readonly RuleCounter[],
  answer: Answer,
): readonly RuleVerdict[] {
  let verdicts: RuleVerdict[] | undefined;
  let first = 0;
  while (first < ruleCounters.length) {
    const { appliedRule, rule } = ruleCounters[first] as RuleCounter;
    const own = first;
    first += appliedRule.windows.length;
    if (!dependsOnResponse(rule)) continue;
    verdicts ??= [];
    verdicts.push(verdictOf(ruleCounters.slice(own, first), answer, own));
  }
  return verdicts ?? NO_VERDICTS;
}

/** Returns verdicts without a charge, of the rules whose cost depends on the response. */
export function verdictsSaying(
  says: "undecided" | "blocked",
  appliedRules: readonly AppliedRule[],
): readonly RuleVerdict[] {
  const charged = appliedRules.filter(({ rule }) => dependsOnResponse(rule));
  return charged.map((appliedRule) => ({ appliedRule, says }));
}

/** Whether a rule is charged for the response, as far as is known. */
export function mayBeCharged({ says, later }: RuleVerdict): boolean {
  return says === "admitted" || later !== undefined;
}

/** Returns the quota that a rule reserves. If the rule is decided later, returns what it will reserve. */
export function reservedBy({ appliedRule, reserve, later }: RuleVerdict): number {
  const { rule, cost } = appliedRule;
  if (later && isSettled(rule)) return cost ?? costBefore(rule.cost);
  return reserve?.cost ?? 0;
}

/** @param first the index of the answer's tally for the rule's first counter */
function verdictOf(
  ruleCounters: readonly RuleCounter[],
  { admitted, tallies, now }: Answer,
  first: number,
): RuleVerdict {
  const [{ appliedRule, rule, shards, counter }] = ruleCounters as [RuleCounter];
  const verdict = {
    appliedRule,
    says: admitted ? "admitted" : "denied",
    ...(shards && { shards }),
  } as const;
  if (!admitted || counter.checkOnly || !isSettled(rule)) return verdict;
  const windows: number[] = [];
  const charged: number[] = [];
  for (const [index, { counter: each }] of ruleCounters.entries()) {
    const tally = tallies[first + index];
    if (!tally) return verdict;
    // If quota rolls over, the window of the charge can be later than the window at `now`.
    const window = each.rollsOver
      ? windowEndingNear(now + tally.resetMs, each)
      : windowAt(now, each);
    windows.push(tally.chargedIn ?? window.index);
    if (shards) charged.push(shards[tally.inAlternative ? 1 : 0]);
  }
  const reserve = { cost: counter.cost, windows, ...(shards && { shards: charged }) };
  return { ...verdict, reserve };
}

import { isChargedByResponse } from "../limiter/counters.ts";
import type { Decision, RuleVerdict } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/** The outcomes of rules that have denied a request which passed. docs/guides/usage.md explains all outcomes. */
const OF_DENIED = { enforce: "over", mark: "marked", shadow: "shadow-limited" } as const;

/**
 * Writes a data point for each rule that counted a decided request: at once, or when the rule is decided. Of the
 * enforced rules of a denied request, only the one that denied it has a point. Keeps nothing, and never throws.
 */
export function writeUsage(
  dataset: AnalyticsEngineDataset,
  appliedRules: readonly AppliedRule[],
  decision: Decision,
  background: (task: Promise<unknown>) => void,
): void {
  const isUndecided = decision.outcome === "undecided";
  const verdicts = isUndecided ? [] : decision.verdicts;
  const isDenied = decision.outcome === "limited";
  if (isDenied) write(dataset, decision.deniedBy.appliedRule, "limited", 1, 0);
  for (const verdict of verdicts) {
    const { appliedRule, pendingVerdict } = verdict;
    const isEnforced = appliedRule.rule.mode === "enforce";
    if (isDenied && isEnforced) continue;
    if (!pendingVerdict) writeVerdict(dataset, verdict, "allowed");
    else {
      const writeLate = (late: readonly RuleVerdict[]) => {
        for (const each of late) writeVerdict(dataset, each, isEnforced ? "ahead" : "allowed");
      };
      background(pendingVerdict.then(writeLate));
    }
  }
  // While the store fails, this isolate may have decided some rules alone, and nobody has decided the others.
  if (!isUndecided && !decision.storeFailure) return;
  for (const applied of appliedRules) {
    if (verdicts.some(({ appliedRule }) => appliedRule === applied)) continue;
    const writeAll = (identified: readonly AppliedRule[]) => {
      for (const each of identified) write(dataset, each, "undecided", 1, 0);
    };
    if (applied.pendingRules) background(applied.pendingRules.then(writeAll, () => {}));
    else writeAll([applied]);
  }
}

/** Writes a data point for a charge after a decision. A negative cost gives quota back. Never throws. */
export function writeLateCharge(
  dataset: AnalyticsEngineDataset,
  appliedRule: AppliedRule,
  cost: number,
): void {
  write(dataset, appliedRule, "settled", 0, cost);
}

function writeVerdict(
  dataset: AnalyticsEngineDataset,
  { appliedRule, says, cost }: RuleVerdict,
  ofAdmitted: "allowed" | "ahead",
): void {
  const { rule } = appliedRule;
  const ofOthers = says === "denied" ? OF_DENIED[rule.mode] : says;
  if (ofOthers !== "admitted") write(dataset, appliedRule, ofOthers, 1, 0);
  else write(dataset, appliedRule, ofAdmitted, 1, isChargedByResponse(rule) ? 0 : cost);
}

function write(
  dataset: AnalyticsEngineDataset,
  { rule, identity, tier = "" }: AppliedRule,
  outcome: string,
  requests: 0 | 1,
  quota: number,
): void {
  // After an internal error, the client of a rule in shadow mode is unknown.
  if (identity === "") return;
  try {
    dataset.writeDataPoint({
      indexes: [identity],
      blobs: [rule.name, tier, outcome, rule.mode],
      doubles: [requests, quota],
    });
  } catch {
    // A failure of the data set must not fail a request.
  }
}

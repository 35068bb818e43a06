import { isChargedByResponse } from "../limiter/counters.ts";
import type { Decision, RuleVerdict } from "../limiter/decision.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/**
 * What became of a request under a rule, in the words of the statistics. `ahead` passed before the store had decided,
 * and was then charged; `over` passed, and was then denied. `settled` is no request, but a later charge.
 */
type UsageOutcome =
  | "allowed"
  | "ahead"
  | "over"
  | "limited"
  | "marked"
  | "shadow-limited"
  | "undecided"
  | "settled";

/** Keeps the Worker alive until a task has ended. */
type Background = (task: Promise<unknown>) => void;

/**
 * Writes a data point for each rule that counted a decided request: at once, or when the rule is decided. A denied
 * request has a point of the rule that denied it, and of the rules that are not enforced. Keeps nothing in memory, and
 * never throws.
 */
export function writeUsage(
  dataset: AnalyticsEngineDataset,
  appliedRules: readonly AppliedRule[],
  decision: Decision,
  background: Background,
): void {
  if (decision.outcome === "undecided") {
    for (const each of appliedRules) writeUndecided(dataset, each, background);
    return;
  }
  const denied = decision.outcome === "limited" ? decision.deniedBy : undefined;
  if (denied) writeVerdict(dataset, denied, "limited");
  for (const verdict of decision.verdicts) {
    const { appliedRule, pendingVerdict } = verdict;
    const isEnforced = appliedRule.rule.mode === "enforce";
    if (denied && isEnforced) continue;
    if (!pendingVerdict) {
      writeVerdict(dataset, verdict, outcomeOf(verdict, "allowed"));
      continue;
    }
    const write = (late: readonly RuleVerdict[]) => {
      for (const each of late) {
        writeVerdict(dataset, each, outcomeOf(each, isEnforced ? "ahead" : "allowed"));
      }
    };
    background(pendingVerdict.then(write));
  }
  if (!decision.storeFailure) return;
  // This isolate has decided some rules alone, and no store has decided the others.
  for (const each of appliedRules) {
    const isDecided = decision.verdicts.some(({ appliedRule }) => appliedRule === each);
    if (!isDecided) writeUndecided(dataset, each, background);
  }
}

/**
 * Writes a data point for a charge after a decision, which is negative if quota was given back. Never throws.
 *
 * @param cost the difference from the quota that was charged before
 */
export function writeLateCharge(
  dataset: AnalyticsEngineDataset,
  appliedRule: AppliedRule,
  cost: number,
): void {
  write(dataset, appliedRule, "settled", 0, cost);
}

/** A rule whose client is identified later has no point for an exempt request. */
function writeUndecided(
  dataset: AnalyticsEngineDataset,
  appliedRule: AppliedRule,
  background: Background,
): void {
  const writeAll = (identified: readonly AppliedRule[]) => {
    for (const each of identified) write(dataset, each, "undecided", 1, 0);
  };
  const { pendingRules } = appliedRule;
  if (pendingRules) background(pendingRules.then(writeAll, () => {}));
  else writeAll([appliedRule]);
}

function outcomeOf(
  { appliedRule, says }: RuleVerdict,
  ofAdmitted: "allowed" | "ahead",
): UsageOutcome {
  if (says === "undecided") return "undecided";
  if (says === "admitted") return ofAdmitted;
  const { mode } = appliedRule.rule;
  if (mode === "enforce") return "over";
  return mode === "mark" ? "marked" : "shadow-limited";
}

function writeVerdict(
  dataset: AnalyticsEngineDataset,
  { appliedRule, says, cost }: RuleVerdict,
  outcome: UsageOutcome,
): void {
  const isCharged = says === "admitted" && !isChargedByResponse(appliedRule.rule);
  write(dataset, appliedRule, outcome, 1, isCharged ? cost : 0);
}

/** Writes a data point. docs/guides/usage.md describes the order of its fields, which queries of users depend on. */
function write(
  dataset: AnalyticsEngineDataset,
  { rule, identity, tier = "" }: AppliedRule,
  outcome: UsageOutcome,
  requests: 0 | 1,
  quota: number,
): void {
  // The client of a rule in shadow mode may be unknown, because its key has failed.
  if (identity === "") return;
  try {
    dataset.writeDataPoint({
      indexes: [identity],
      blobs: [rule.name, tier, outcome, rule.mode],
      doubles: [requests, quota],
    });
  } catch {
    // A failure of the data set must not fail a request, and a log line for each request would cost more than the point.
  }
}

import type { Config } from "../../src/config/schema.ts";
import type { ReplayEngine, ReplayNote } from "./replay-engine.ts";
import type { Comparison, RuleReport } from "./report.ts";
import { type RuleChange, ruleChanges } from "./rule-changes.ts";
import type { ReplayTally } from "./tally/replay-tally.ts";

interface ComparedConfig {
  readonly config: Config;
  readonly engine: ReplayEngine;
}

/** Returns how the rules and the verdicts of a configuration differ from those of another one. */
export function compareRules(
  now: ComparedConfig,
  before: ComparedConfig,
  tally: ReplayTally,
  rules: readonly RuleReport[],
): Pick<Comparison, "notes" | "rules"> {
  const changes = ruleChanges(now.config, before.config);
  return {
    notes: [
      ...unfairNotes(now, before, changes),
      ...before.engine.notes,
      ...before.engine.laterNotes,
    ],
    rules: [...changes].map(([rule, change]) => ({
      rule,
      change,
      deniedBefore: tally.comparison?.deniedBefore(rule),
      denied: rules.find(({ name }) => name === rule)?.denied,
    })),
  };
}

/**
 * Returns a note for each rule that was left out under one configuration and replayed under the other one, or that
 * only one of them has: the comparison is not fair then.
 */
function unfairNotes(
  now: ComparedConfig,
  before: ComparedConfig,
  changes: ReadonlyMap<string, RuleChange>,
): ReplayNote[] {
  const isLeftOut = ({ engine }: ComparedConfig, rule: string) => engine.leftOut.includes(rule);
  return [...changes].flatMap(([rule, change]): ReplayNote[] => {
    const [leftOutNow, leftOutBefore] = [isLeftOut(now, rule), isLeftOut(before, rule)];
    if (leftOutNow === leftOutBefore) return [];
    return [{ code: "unfair-comparison", rule, text: unfairText(rule, change, leftOutNow) }];
  });
}

function unfairText(rule: string, change: RuleChange, isNow: boolean): string {
  if (change === "added") {
    return `The rule "${rule}" is new, but it is left out. The comparison does not show the requests that it would deny.`;
  }
  if (change === "removed") {
    return `The rule "${rule}" was removed, and it is left out. The comparison does not show the requests that it denied.`;
  }
  const [without, other] = isNow
    ? ["this configuration", "the other one"]
    : ["the other configuration", "this one"];
  return `The rule "${rule}" is left out under ${without}, but replayed under ${other}. So the comparison is not fair: requests that only this rule denies appear as ${isNow ? "newly allowed" : "newly denied"}.`;
}

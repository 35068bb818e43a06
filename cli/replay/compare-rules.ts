import type { Config } from "../../src/config/schema.ts";
import type { ReplayEngine, ReplayNote } from "./replay-engine.ts";
import type { ComparedRule, Comparison, RuleReport } from "./report.ts";
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
    rules: [...changes].map(([rule, change]) => {
      const modeBefore = modeOf(before, rule);
      const mode = modeOf(now, rule);
      const overLimitBefore = tally.comparison?.overLimitBefore(rule);
      const overLimit = rules.find(({ name }) => name === rule)?.denied;
      const deniedBefore = deniedIn(modeBefore, overLimitBefore);
      const denied = deniedIn(mode, overLimit);
      return { rule, change, modeBefore, mode, overLimitBefore, overLimit, deniedBefore, denied };
    }),
  };
}

function modeOf({ config }: ComparedConfig, rule: string): ComparedRule["mode"] {
  return config.rules.find(({ name }) => name === rule)?.mode;
}

/** Returns how many requests a rule denies: none in the modes shadow and mark. */
function deniedIn(mode: ComparedRule["mode"], overLimit: number | undefined): number | undefined {
  return mode === "enforce" || overLimit === undefined ? overLimit : 0;
}

/** Whether the two configurations treat a rule differently. */
export function isDifferent({ change, overLimitBefore, overLimit }: ComparedRule): boolean {
  return change !== "same" || overLimitBefore !== overLimit;
}

/** Returns the mode of a rule, and the mode before if it was another one. */
export function modesOf({ modeBefore, mode }: ComparedRule): string {
  const isChanged = modeBefore !== undefined && mode !== undefined && modeBefore !== mode;
  return isChanged ? `${mode} (before: ${modeBefore})` : (mode ?? modeBefore ?? "");
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

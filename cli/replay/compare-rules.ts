import type { Config } from "../../src/config/schema.ts";
import type { ReportNote } from "../logs/needs.ts";
import type { ReplayEngine } from "./engine.ts";
import type { ComparedRule, Comparison, RuleReport } from "./report.ts";
import type { ReplayTotals } from "./totals.ts";

type RuleChange = Comparison["rules"][number]["change"];

/** Returns how each rule differs from the rule of the same name in the other configuration. */
export function ruleChanges(config: Config, against: Config): ReadonlyMap<string, RuleChange> {
  const [now, before] = [contentsOf(config), contentsOf(against)];
  const changes = new Map<string, RuleChange>();
  for (const [rule, content] of now) {
    const other = before.get(rule);
    if (other === undefined) changes.set(rule, "added");
    else changes.set(rule, content === other ? "same" : "changed");
  }
  for (const rule of before.keys()) if (!now.has(rule)) changes.set(rule, "removed");
  return changes;
}

/** Returns each rule as a text, with the settings that change the decisions of all rules. */
function contentsOf({ rules, ipv6Prefix, caseSensitivePaths }: Config): Map<string, string> {
  return new Map(
    rules.map((rule) => [
      rule.name,
      JSON.stringify({ rule, ipv6Prefix, caseSensitivePaths }, replacer),
    ]),
  );
}

/** Without this function, maps, sets of networks and patterns would become empty objects. */
function replacer(_key: string, value: unknown): unknown {
  if (value instanceof RegExp || typeof value === "function") return String(value);
  const isList = typeof value === "object" && value !== null && Symbol.iterator in value;
  return isList ? [...(value as Iterable<unknown>)] : value;
}

interface ComparedConfig {
  readonly config: Config;
  readonly engine: Pick<ReplayEngine, "leftOut" | "notes">;
}

/** Returns how the rules and the verdicts of a configuration differ from those of another one. */
export function compareRules(
  now: ComparedConfig,
  before: ComparedConfig,
  totals: ReplayTotals,
  rules: readonly RuleReport[],
): Pick<Comparison, "notes" | "rules"> {
  const changes = ruleChanges(now.config, before.config);
  return {
    notes: [...unfairNotes(now, before, changes), ...before.engine.notes],
    rules: [...changes].map(([rule, change]) => {
      const modeBefore = modeOf(before, rule);
      const mode = modeOf(now, rule);
      const overLimitBefore = totals.overLimitBefore(rule);
      const overLimit = rules.find(({ name }) => name === rule)?.denied;
      return { rule, change, modeBefore, mode, overLimitBefore, overLimit };
    }),
  };
}

function modeOf({ config }: ComparedConfig, rule: string): ComparedRule["mode"] {
  return config.rules.find(({ name }) => name === rule)?.mode;
}

/** Returns a note for each rule that was replayed under only one configuration, which makes the comparison unfair. */
function unfairNotes(
  now: ComparedConfig,
  before: ComparedConfig,
  changes: ReadonlyMap<string, RuleChange>,
): ReportNote[] {
  const isLeftOut = ({ engine }: ComparedConfig, name: string) =>
    engine.leftOut.some(({ rule }) => rule === name);
  return [...changes.keys()].flatMap((rule): ReportNote[] => {
    const isOut = [now, before].map((each) => isLeftOut(each, rule));
    if (isOut[0] === isOut[1]) return [];
    const text = `The rule "${rule}" is left out under ${isOut[0] ? "this configuration" : "the other configuration"}. So the comparison is not fair: it does not show the requests that only this rule denies there.`;
    return [{ code: "unfair-comparison", rule, text }];
  });
}

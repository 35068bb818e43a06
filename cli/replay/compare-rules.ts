import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LogFacts } from "../logs/log-request.ts";
import {
  cureText,
  type ReportNote,
  statesHeader,
  type UnmetNeed,
  unmetNeedsOf,
} from "../logs/needs.ts";
import { formatKey, formatMatch, formatQuota } from "../rule-table.ts";
import type {
  ComparedRule,
  Comparison,
  ReplayEngine,
  ReplayedRule,
  ReplayOptions,
  RuleReport,
} from "./report.ts";
import type { ReplayTally } from "./tally.ts";

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

/** Without it, a map, a set of networks and a pattern would become an empty object. */
function replacer(_key: string, value: unknown): unknown {
  if (value instanceof RegExp || typeof value === "function") return String(value);
  const isList = typeof value === "object" && value !== null && Symbol.iterator in value;
  return isList ? [...(value as Iterable<unknown>)] : value;
}

/** The rules that a log suffices for, and why the others are left out. */
interface RuleChoice {
  readonly rules: readonly Rule[];
  readonly leftOut: readonly string[];
  readonly notes: readonly ReportNote[];
}

/** Chooses the rules to replay by the facts that the log states. */
export function chooseRules(
  { rules }: Pick<Config, "rules">,
  facts: LogFacts,
  { missingAsAbsent = false }: ReplayOptions,
): RuleChoice {
  const chosen: Rule[] = [];
  const leftOut: string[] = [];
  const notes: ReportNote[] = [];
  for (const rule of rules) {
    const needs = unmetNeedsOf(rule, facts);
    const isChosen = needs.every(({ canBeAbsent }) => missingAsAbsent && canBeAbsent);
    if (isChosen) chosen.push(rule);
    else leftOut.push(rule.name);
    notes.push(...needs.map((need) => noteOf(rule, need, isChosen)));
    if (isChosen) notes.push(...exemptionNotes(rule, facts), ...assumptionsAbout(rule));
  }
  return { rules: chosen, leftOut, notes };
}

function noteOf({ name }: Rule, need: UnmetNeed, isChosen: boolean): ReportNote {
  const { code, reason } = need;
  if (isChosen) {
    const text = `${reason} The rule "${name}" is replayed as if no request had it.`;
    return { code: "treated-as-absent", rule: name, text };
  }
  const cure = cureText(need);
  const hint = cure === undefined ? "" : ` To replay it, ${cure}.`;
  return { code, rule: name, text: `The rule "${name}" is left out. ${reason}${hint}` };
}

/** Exemptions by header fields that the log lacks, or whose value is a secret of the Worker. */
function exemptionNotes({ name, exempt }: Rule, facts: LogFacts): ReportNote[] {
  const notes: ReportNote[] = [];
  const add = (text: string) => notes.push({ code: "exemption-not-logged", rule: name, text });
  if (exempt && exempt.networks.size > 0 && !facts.ip) {
    add(`The rule "${name}" is replayed without exempt.ips: the log does not state addresses.`);
  }
  for (const { name: field, value } of exempt?.headers ?? []) {
    const reason = !statesHeader(facts, field)
      ? `the log does not state the header field ${field}`
      : typeof value !== "string" && "its value is a secret of the Worker";
    if (!reason) continue;
    add(`The rule "${name}" is replayed without the exemption by ${field}: ${reason}.`);
  }
  return notes;
}

function assumptionsAbout({ name, spread, shards }: Rule): ReportNote[] {
  const notes: ReportNote[] = [];
  if (spread) {
    const text = `The windows of the rule "${name}" begin as in a Worker without WEIR_KEY_SECRET. With this secret, they begin at other times.`;
    notes.push({ code: "spread-without-secret", rule: name, text });
  }
  if (shards > 1) {
    const text = `The rule "${name}" chooses between shards at random, so a Worker may decide a few requests differently.`;
    notes.push({ code: "random-shards", rule: name, text });
  }
  return notes;
}

/** Describes a rule for reports. */
export function replayedRuleOf({ name, mode, key, windows, match }: Rule): ReplayedRule {
  return {
    name,
    mode,
    key: formatKey(key),
    limits: windows.map(formatQuota).join(", "),
    match: formatMatch(match),
  };
}

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
): ReportNote[] {
  const isLeftOut = ({ engine }: ComparedConfig, rule: string) => engine.leftOut.includes(rule);
  return [...changes].flatMap(([rule, change]): ReportNote[] => {
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

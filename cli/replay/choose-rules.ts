import { hasConcurrent, type Rule, withoutConcurrent } from "../../src/config/rule.ts";
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
import type { ReplayedRule, ReplayReport } from "./report.ts";

/** The rules to replay, and the rules that are left out, with reasons. */
export interface RuleChoice {
  readonly rules: readonly Rule[];
  readonly leftOut: ReplayReport["leftOut"];
  readonly notes: readonly ReportNote[];
}

/** Chooses the rules to replay by the facts that the log states. */
export function chooseRules(
  { rules }: Pick<Config, "rules">,
  facts: LogFacts,
  missingAsAbsent: boolean,
): RuleChoice {
  const chosen: Rule[] = [];
  const leftOut: { rule: string; reason: string }[] = [];
  const notes: ReportNote[] = [];
  for (const rule of rules) {
    const { name } = rule;
    const needs = unmetNeedsOf(rule, facts);
    const isChosen = needs.every(({ canBeAbsent }) => missingAsAbsent && canBeAbsent);
    if (isChosen) {
      chosen.push(facts.has("duration") ? rule : withoutConcurrent(rule));
      notes.push(...needs.map((need) => absentNote(rule, need)));
      notes.push(...exemptionNotes(rule, facts), ...assumptionsAbout(rule, facts));
      continue;
    }
    const reasons = needs.map(reasonOf);
    leftOut.push({ rule: name, reason: reasons.join(" ") });
    for (const [index, { code }] of needs.entries()) {
      const text = `The rule "${name}" is left out. ${reasons[index]}`;
      notes.push({ code, rule: name, text });
    }
  }
  return { rules: chosen, leftOut, notes };
}

function reasonOf(need: UnmetNeed): string {
  const cure = cureText(need);
  return cure === undefined ? need.reason : `${need.reason} To replay it, ${cure}.`;
}

function absentNote({ name }: Rule, { reason }: UnmetNeed): ReportNote {
  const text = `${reason} The rule "${name}" is replayed as if no request had it.`;
  return { code: "treated-as-absent", rule: name, text };
}

/** Notes about exemptions by facts that the log lacks, or by secrets of the Worker. */
function exemptionNotes({ name, exempt }: Rule, facts: LogFacts): ReportNote[] {
  const notes: ReportNote[] = [];
  const add = (text: string) => notes.push({ code: "exemption-not-logged", rule: name, text });
  if (exempt && exempt.networks.size > 0 && !facts.has("ip")) {
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

function assumptionsAbout(rule: Rule, facts: LogFacts): ReportNote[] {
  const { name, spread, shards, readsLimits } = rule;
  const notes: ReportNote[] = [];
  if (hasConcurrent(rule) && !facts.has("duration")) {
    const text = `The rule "${name}" is replayed without concurrent: the log does not state how long requests took. For JSON lines, add --map duration=FIELD.`;
    notes.push({ code: "concurrent-left-out", rule: name, text });
  }
  if (readsLimits) {
    const text = `The rule "${name}" is replayed with the default of each limit that differs by client: no log has the clients' own numbers.`;
    notes.push({ code: "default-limit", rule: name, text });
  }
  if (spread) {
    const text = `The windows of the rule "${name}" begin as in a Worker without WEIR_KEY_SECRET. With this secret, they begin at other times.`;
    notes.push({ code: "spread-without-secret", rule: name, text });
  }
  if (rule.async) {
    const text = `The rule "${name}" is replayed without async. With it, up to one request more of a client may pass in each isolate and window.`;
    notes.push({ code: "passes-ahead", rule: name, text });
  }
  if (shards > 1) {
    const text = `The rule "${name}" chooses between shards at random, so a Worker may decide a few requests differently.`;
    notes.push({ code: "random-shards", rule: name, text });
  }
  return notes;
}

export function replayedRuleOf({ name, mode, key, windows, match }: Rule): ReplayedRule {
  return {
    name,
    mode,
    key: formatKey(key),
    limits: windows.map(formatQuota).join(", "),
    match: formatMatch(match),
  };
}

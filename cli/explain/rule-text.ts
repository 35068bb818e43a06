import type { Quota } from "../../src/config/quota.ts";
import type { ExplainedKeyElement, ExplainedRule } from "../../src/explain/explanation.ts";
import { type Cell, count, duration, effectText, styled, table, time } from "../admin/text.ts";
import { printable } from "../doctor/finding.ts";
import { WIDTH } from "../print/fit-text.ts";
import { conditionLines, conditionText } from "./condition-text.ts";
import { indented, second, shortened, wrapped } from "./layout.ts";

/** The maximum length of a key's value, in characters. */
const MAX_VALUE = 80;
/** The maximum length of a text with `--verbose`, in characters. */
const MAX_VERBOSE = 2000;
/** The maximum number of counters of a rule whose stored keys are listed. */
const MAX_STORED = 12;
/** The width of the column of labels, in characters. */
const LABEL = 12;

/** Describes a rule that applies: its conditions, the client's key, the counters and what would be stored. */
export function appliedRuleText(rule: ExplainedRule, isVerbose: boolean, now: number): string {
  return [
    heading(rule),
    ...conditionLines(rule.conditions, true, !isVerbose),
    ...keyLines(rule.key, isVerbose),
    ...clientLines(rule, isVerbose),
    ...counterLines(rule, now),
    ...(rule.mayDiffer ? [labelled("shards", DRAWN)] : []),
    ...storedLines(rule),
  ].join("\n");
}

const DRAWN =
  "The decision depends on the two shards that a request draws. This is the likelier one.";

function heading({ rule, mode, exceeds, why }: ExplainedRule): string {
  const name = styled("bold", printable(rule));
  // The conditions show why it matches.
  const more = why.replace(/^It matches[^.]*\.\s*/, "");
  const rest = more === "" ? "" : `: ${shortened(more, WIDTH)}`;
  if (!exceeds) return `${styled("green", "✓")} ${name} applies (${printable(mode)})${rest}`;
  const verdict =
    mode === "enforce"
      ? "denies the request"
      : `would deny the request, but its mode is ${printable(mode)}`;
  return `${styled("red", "✗")} ${name} ${verdict}${rest}`;
}

/** Describes the rules that do not apply, each in one line with the condition that decides. */
export function otherRuleLines(rules: readonly ExplainedRule[], isVerbose: boolean): string[] {
  const width = Math.max(0, ...rules.map(({ rule }) => rule.length));
  return rules.flatMap(({ rule, conditions, why }) => {
    const start = `${styled("dim", "–")} ${printable(rule).padEnd(width)}  `;
    const rest = WIDTH - width - 4;
    const deciding = conditions.at(-1);
    if (!deciding || isVerbose) {
      return [
        start + shortened(why, isVerbose ? MAX_VERBOSE : rest),
        ...conditionLines(conditions, false, false),
      ];
    }
    const field = shortened(deciding.field, 60);
    const text = `${field}: ${conditionText(deciding, rest - field.length - 2)}`;
    const notes = deciding.note ? wrapped(" ".repeat(width + 4), deciding.note) : [];
    return [start + text, ...notes];
  });
}

function labelled(label: string, text: string): string {
  return `    ${styled("dim", label.padEnd(LABEL))}${text}`;
}

function keyLines(key: readonly ExplainedKeyElement[], isVerbose: boolean): string[] {
  const [maxPart, maxValue, maxLine] = isVerbose
    ? [MAX_VERBOSE, MAX_VERBOSE, MAX_VERBOSE]
    : [60, MAX_VALUE, WIDTH + MAX_VALUE];
  return key.flatMap(({ alternatives, isFallback }, index) => {
    const lines = alternatives.map(({ part, result, from, value }) =>
      result === "used"
        ? `${shortened(part, maxPart)}${value === undefined ? "" : ` = ${shortened(value, maxValue)}`}, from ${printable(from)}`
        : `${shortened(part, maxPart)} is absent: ${printable(from)}`,
    );
    if (isFallback) lines.push("so the client's address is used");
    return lines.map((line, at) =>
      labelled(index === 0 && at === 0 ? "key" : "", shortened(line, maxLine)),
    );
  });
}

function clientLines(
  { client, tier, cost, costSource, banMs, newBan, override }: ExplainedRule,
  isVerbose: boolean,
): string[] {
  const [maxTier, maxSource] = isVerbose ? [MAX_VERBOSE, MAX_VERBOSE] : [40, 60];
  const parts = [
    client !== undefined && printable(client),
    tier !== undefined && `tier ${shortened(tier, maxTier)}`,
    cost !== undefined &&
      `cost ${count(cost)}${costSource && !/^cost: \d+$/.test(costSource) ? ` (${shortened(costSource, maxSource)})` : ""}`,
  ].filter(Boolean);
  const lines = parts.length > 0 ? [labelled("client", parts.join(", "))] : [];
  if (banMs !== undefined && banMs > 0) {
    lines.push(labelled("ban", styled("red", `banned for another ${duration(banMs)}`)));
  }
  if (newBan) {
    const atLeast = newBan.isAtLeast ? "at least " : "";
    lines.push(labelled("ban", styled("red", `begins, ${atLeast}until ${second(newBan.until)}`)));
  }
  if (override) {
    const { effect, expiresAt, by, reason } = override;
    lines.push(
      labelled(
        "override",
        printable(`${effectText(effect)}, until ${time(expiresAt)}, by ${by}: ${reason}`),
      ),
    );
  }
  return lines;
}

function counterLines(
  { counters = [], quotas = [], cost: ruleCost = 0 }: ExplainedRule,
  now: number,
): string[] {
  if (counters.length === 0) return quotaLines(quotas);
  const headings = ["POLICY", "SHARD", "LIMIT", "COUNT", "COST", "LEFT AFTER", "WINDOW ENDS", "IN"];
  const rows = counters.map((each): Cell[] => {
    const { policy, shard, limit, capacity, count: before, cost, countAfter, windowEnd } = each;
    const left = Math.max(0, capacity - (countAfter ?? before));
    // A request that is certainly denied is not counted, so the counter's own cost is 0.
    const exceeds = before + Math.max(cost, ruleCost) > capacity;
    return [
      policy,
      shard ?? "",
      limit,
      { text: before, style: exceeds ? "red" : "green" },
      cost,
      { text: left, style: left === 0 ? "red" : "green" },
      second(windowEnd),
      duration(windowEnd - now),
    ];
  });
  return [indented(table(headings, rows), 4)];
}

/** Returns the table of a rule whose counters are unknown. */
function quotaLines(quotas: readonly Quota[]): string[] {
  if (quotas.length === 0) return [];
  const headings = ["POLICY", "LIMIT", "LEFT", "NEW WINDOW IN"];
  const rows = quotas.map(({ policy, limit, remaining, resetMs }): Cell[] => [
    policy,
    limit,
    { text: remaining, style: remaining === 0 ? "red" : "green" },
    duration(resetMs),
  ]);
  return [indented(table(headings, rows), 4)];
}

/** Returns the lines about the stored keys, and the values that the request would store. */
function storedLines({ counters = [], newBan }: ExplainedRule): string[] {
  const lines = counters.slice(0, MAX_STORED).map(({ storedKey, countAfter, expiresAt }) => {
    const value =
      countAfter === undefined
        ? "stores nothing"
        : `${count(countAfter)}${expiresAt === undefined ? "" : `, expires ${second(expiresAt)}`}`;
    return `${shortened(storedKey, 300)} → ${value}`;
  });
  if (counters.length > MAX_STORED) lines.push(`and ${counters.length - MAX_STORED} more`);
  if (newBan) lines.push(`${shortened(newBan.storedKey, 300)} → the ban`);
  return lines.map((line, index) => labelled(index === 0 ? "stored key" : "", line));
}

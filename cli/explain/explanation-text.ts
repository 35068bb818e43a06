import type { Quota } from "../../src/config/custom.ts";
import type {
  ExplainedCondition,
  ExplainedCounter,
  ExplainedKeyElement,
  ExplainedRequest,
  ExplainedResponse,
  ExplainedRule,
  Explanation,
} from "../../src/explain/explanation.ts";
import { type Cell, count, duration, effectText, styled, table, time } from "../admin/text.ts";
import { printable } from "../doctor/findings.ts";
import { WIDTH } from "../print/text.ts";

/** Returns a text on one line, printable and not longer than a number of characters. */
function shortened(text: string, max: number): string {
  const clean = printable(text);
  return clean.length > max ? `${clean.slice(0, max - 1)}…` : clean;
}

/**
 * Breaks a text into lines.
 *
 * @param first the start of the first line; the other lines are indented by its length
 */
function wrapped(first: string, text: string, width = WIDTH): string[] {
  const lines: string[] = [];
  const indent = " ".repeat(first.length);
  let line = first;
  let hasWord = false;
  for (const word of printable(text).split(" ")) {
    if (hasWord && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent;
      hasWord = false;
    }
    line += hasWord ? ` ${word}` : word;
    hasWord = true;
  }
  return [...lines, line];
}

/** Indents each line of a text. */
function indented(text: string, spaces: number): string {
  return text.replace(/^(?=.)/gm, " ".repeat(spaces));
}

/** Formats a time in UTC with its seconds: `2026-11-22 17:04:05Z`. */
function second(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** What a request has is shortened to no fewer characters than these. */
const MIN_ACTUAL = 44;
/** The maximum length of a text with `--verbose`, in characters. */
const MAX_TEXT = 2000;
/** The width of the column of fields, in characters. */
const MAX_FIELD = 40;

/**
 * Returns the lines about the conditions of a rule.
 *
 * @param applies whether the rule applies. Then some exceptions may hold, but not all of them
 * @param isShort whether long texts are shortened
 */
function conditionLines(
  conditions: readonly ExplainedCondition[],
  applies: boolean,
  isShort: boolean,
): string[] {
  const width = Math.max(0, ...conditions.map(({ field }) => Math.min(field.length, MAX_FIELD)));
  return conditions.flatMap((condition) => {
    const field = shortened(condition.field, 80).padEnd(width);
    const start = `    ${markOf(condition, applies)} ${field}  `;
    const text = conditionText(condition, isShort ? WIDTH - field.length - 8 : undefined);
    const notes = condition.note ? wrapped(" ".repeat(width + 8), condition.note) : [];
    return [start + text, ...notes];
  });
}

/** Returns a green mark if the condition lets the rule apply, and a red one if it prevents that. */
function markOf({ field, result }: ExplainedCondition, applies: boolean): string {
  if (result === "unknown") return styled("yellow", "?");
  if (!isException(field)) return result === "holds" ? styled("green", "✓") : styled("red", "✗");
  if (result === "fails") return styled("green", "✓");
  return applies ? styled("dim", "–") : styled("red", "✗");
}

/**
 * Describes what a request has and what a rule demands.
 *
 * @param max the maximum length in characters; undefined for no maximum
 */
function conditionText(
  { field, actual, expected }: ExplainedCondition,
  max: number | undefined,
): string {
  const label = isException(field) ? "excepted" : "expected";
  const demanded = `(${label}: ${shortened(expected, MAX_TEXT)})`;
  const given = shortened(actual, MAX_TEXT);
  if (max === undefined) return `${given} ${demanded}`;
  // What the request has is shortened first, but only as far as it leaves room.
  const room = Math.max(MIN_ACTUAL, max - demanded.length - 1);
  return shortened(`${shortened(given, room)} ${demanded}`, max);
}

/** Whether a rule does not count a request if this condition and all others like it hold. */
function isException(field: string): boolean {
  return /^(?:match\.except|exempt)\b/.test(field);
}

/** The maximum length of a key's value, in characters. */
const MAX_VALUE = 80;
/** The maximum length of a text with `--verbose`, in characters. */
const MAX_VERBOSE = 2000;
/** The maximum number of counters of a rule whose stored keys are listed. */
const MAX_STORED = 12;
/** The width of the column of labels, in characters. */
const LABEL = 12;

/** Describes a rule that applies: its conditions, the client's key, the counters and what would be stored. */
function appliedRuleText(rule: ExplainedRule, isVerbose: boolean, now: number): string {
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
function otherRuleLines(rules: readonly ExplainedRule[], isVerbose: boolean): string[] {
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

/** The maximum number of variants of a path that are listed. */
const MAX_VARIANTS = 8;
/** The maximum number of lines of the body of Weir's own response. */
const MAX_BODY_LINES = 6;

interface TextOptions {
  /** Whether all conditions of the rules that do not apply are shown, and long texts in full. */
  readonly isVerbose: boolean;
  /** The time of the explanation, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Whether the request and the response are unknown. */
  readonly isPartial: boolean;
  /** Sentences about what was assumed or left out. */
  readonly notes: readonly string[];
}

/** Returns an explanation as text: the verdict first, then the request, the rules and the response. */
export function explanationText(explanation: Explanation, options: TextOptions): string {
  const { request, rules, response, storeFailure } = explanation;
  const { isVerbose, isPartial, now, notes } = options;
  const applied = rules.filter(({ applies }) => applies);
  const others = rules.filter(({ applies }) => !applies);
  const sections = [
    verdict(explanation, applied, now),
    isPartial ? "" : requestText(request),
    storeFailure === undefined ? "" : paragraph("", `The store could not be read: ${storeFailure}`),
    ...applied.map((rule) => appliedRuleText(rule, isVerbose, now)),
    otherRulesText(others, isVerbose),
    isPartial ? "" : responseText(response),
    notes.map((note) => paragraph("• ", note)).join("\n"),
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

function paragraph(first: string, text: string): string {
  return wrapped(first, text).join("\n");
}

function otherRulesText(others: readonly ExplainedRule[], isVerbose: boolean): string {
  if (others.length === 0) return "";
  return [styled("dim", "These rules do not apply:"), ...otherRuleLines(others, isVerbose)].join(
    "\n",
  );
}

function verdict(
  { outcome, request, response: { status } }: Explanation,
  applied: readonly ExplainedRule[],
  now: number,
): string {
  const name = requestName(request);
  const code = status === undefined ? "" : ` (${printable(String(status))})`;
  switch (outcome) {
    case "unmatched":
      return headline("green", `✓ Not limited: no rule applies to ${name}.`);
    case "limited":
      return headline("red", `✗ Limited${code}: ${name}. ${reason(applied)}`);
    case "undecided":
      return headline(
        "yellow",
        `? Undecided${code}: ${name}. The store failed, so onError applies.`,
      );
    default:
      return headline("green", `✓ Allowed: ${name}. ${tightest(applied, now)}`);
  }
}

function headline(style: "green" | "red" | "yellow", text: string): string {
  return wrapped("", text)
    .map((line) => styled(style, line))
    .join("\n");
}

/** Names a request by its method, host and canonical path. */
function requestName({ sentMethod, host, path }: ExplainedRequest): string {
  return `${shortened(sentMethod, 20)} ${shortened(host + path, WIDTH / 2)}`;
}

/** Returns why a request is limited. */
function reason(applied: readonly ExplainedRule[]): string {
  const denying = applied.find(({ mode, exceeds }) => mode === "enforce" && exceeds === true);
  if (!denying) return "An enforced rule has no quota left.";
  const { rule, banMs = 0, counters = [], cost = 1, override } = denying;
  const name = `The rule ${rule}`;
  const effect = override?.effect;
  if (effect && "kind" in effect && effect.kind === "blocked") {
    return `An override of the rule ${rule} blocks the client.`;
  }
  if (banMs > 0) return `${name} has banned the client for another ${duration(banMs)}.`;
  const full = counters.find((each) => each.count + Math.max(cost, each.cost) > each.capacity);
  if (!full) return `${name} has no quota left.`;
  if (full.shard !== undefined) {
    const policy = policyCounters(denying).find((each) => each.policy === full.policy) ?? full;
    const others = denying.mayDiffer ? " Other shards have quota left." : "";
    return `${name} has ${leftOf(policy)} left, but not enough in the shards that the request draws.${others}`;
  }
  if (full.capacity === 0) return `${name} has a limit of 0 (${full.policy}).`;
  return `${name} has ${leftOf(full)} left, and the request costs ${count(Math.max(cost, full.cost))}.`;
}

/** Returns the counters of a rule; for a rule with shards, one for each policy with the quota of all shards. */
function policyCounters({ counters = [], quotas = [] }: ExplainedRule): ExplainedCounter[] {
  const first = counters.filter(
    ({ policy }, index) => counters.findIndex((each) => each.policy === policy) === index,
  );
  if (first.every(({ shard }) => shard === undefined)) return [...counters];
  return first.map((counter) => {
    const quota = quotas.find(({ policy }) => policy === counter.policy);
    if (!quota) return counter;
    const charged = counters
      .filter(({ policy }) => policy === counter.policy)
      .reduce((sum, { count: before, countAfter = before }) => sum + countAfter - before, 0);
    const capacity = Math.max(quota.limit, quota.remaining);
    const used = capacity - quota.remaining;
    return { ...counter, capacity, count: used, countAfter: used + charged };
  });
}

function leftOf({ policy, capacity, count: used }: ExplainedCounter): string {
  return `${count(Math.max(0, capacity - used))} of ${count(capacity)} (${policy})`;
}

/** Returns which enforced limit has the smallest part left after the request. */
function tightest(applied: readonly ExplainedRule[], now: number): string {
  const counters = applied.filter(({ mode }) => mode === "enforce").flatMap(policyCounters);
  const partLeft = ({ capacity, count: used, countAfter = used }: ExplainedCounter) =>
    (capacity - countAfter) / Math.max(1, capacity);
  const [first] = counters.toSorted((one, other) => partLeft(one) - partLeft(other));
  if (!first)
    return applied.some(({ quotas }) => quotas?.length) ? "" : "No enforced limit counts it.";
  const after = { ...first, count: first.countAfter ?? first.count };
  const differs = applied.some(({ mode, mayDiffer }) => mode === "enforce" && mayDiffer)
    ? " Another request may be denied, because some shards have no quota left."
    : "";
  return `After it, the least quota is ${leftOf(after)}, for ${duration(first.windowEnd - now)}.${differs}`;
}

function requestText(request: ExplainedRequest): string {
  const { method, sentMethod, host, path, variants, isUnambiguous, isPreflight, client } = request;
  const sent = sentMethod === method ? "" : `, sent as ${sentMethod}`;
  const lines = [
    `${styled("dim", "Request")}  ${printable(`${method} ${shortened(host, 100)}`)}${shortened(path, 2000)}${printable(sent)}${isPreflight ? " (CORS preflight)" : ""}`,
    `${styled("dim", "Client ")}  ${printable(client)}`,
  ];
  const others = variants.filter((variant) => variant !== path).map((each) => shortened(each, 200));
  const more = others.length - MAX_VARIANTS;
  if (others.length > 0) {
    lines.push(
      "         Origins may read the path in these ways too, so rules match them too:",
      ...others.slice(0, MAX_VARIANTS).map((each) => `           ${each}`),
      ...(more > 0 ? [`           and ${more} more`] : []),
    );
  } else if (!isUnambiguous) lines.push("         Origins may read the path in different ways.");
  return lines.join("\n");
}

function responseText(response: ExplainedResponse): string {
  const { headers, body = "", originHeaders = [] } = response;
  const text = wrapped("  ", body).slice(0, MAX_BODY_LINES);
  return [
    responseTitle(response),
    ...fieldLines(headers),
    ...(body === "" ? [] : text),
    ...(originHeaders.length === 0
      ? []
      : ["The origin gets these fields:", ...fieldLines(originHeaders)]),
  ].join("\n");
}

function responseTitle({ status, headers }: ExplainedResponse): string {
  if (status !== undefined) return `Weir answers ${printable(String(status))}:`;
  return headers.length === 0
    ? "The origin's response is not changed."
    : "The origin's response gets these fields:";
}

function fieldLines(fields: readonly (readonly [string, string])[]): string[] {
  return fields.map(([name, value]) => `  ${shortened(`${name}: ${value}`, 2000)}`);
}

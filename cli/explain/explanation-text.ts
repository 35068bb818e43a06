import { formatCount, formatDuration, formatEffect, formatTime } from "../../src/admin/format.ts";
import type {
  ExplainedCondition,
  ExplainedKeyElement,
  ExplainedRequest,
  ExplainedResponse,
  ExplainedRule,
  Explanation,
} from "../../src/explain/explanation.ts";
import { type Cell, fitted, printable, styled, table, WIDTH, wrapped } from "../print/text.ts";

/** The maximum length of a text with `--verbose`, in characters. */
const MAX_TEXT = 2000;
/** The minimum length to which a request's value is shortened, in characters. */
const MIN_ACTUAL = 44;
/** The maximum number of variants of a path that are listed. */
const MAX_VARIANTS = 8;
/** The maximum number of lines of the body of Weir's own response. */
const MAX_BODY_LINES = 6;
/** The width of the column of labels, in characters. */
const LABEL = 12;

interface TextOptions {
  /** Whether to show long texts in full, and all conditions of the rules that do not apply. */
  readonly isVerbose: boolean;
  /** The time of the explanation, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Sentences about assumptions and omissions. */
  readonly notes: readonly string[];
}

/** Returns an explanation as text: the verdict first, then the request, the rules and the response. */
export function explanationText(explanation: Explanation, options: TextOptions): string {
  const { outcome, request, rules, response, storeFailure, waitMs } = explanation;
  const { isVerbose, now, notes } = options;
  const applied = rules.filter(({ applies }) => applies);
  const isWaiting = outcome === "limited" && waitMs !== undefined;
  const effect = isWaiting ? "lets the request wait for its turn" : "denies the request";
  const sections = [
    verdict(explanation, applied),
    requestText(request),
    storeFailure === undefined ? "" : paragraph("", `The store could not be read: ${storeFailure}`),
    ...applied.map((rule) => appliedRuleText(rule, isVerbose, now, effect)),
    otherRulesText(
      rules.filter(({ applies }) => !applies),
      isVerbose,
    ),
    responseText(response),
    notes.map((note) => paragraph("• ", note)).join("\n"),
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

/** Breaks a text into lines. All lines but the first are indented by the length of `start`. */
function paragraph(start: string, text: string): string {
  return start + wrapped(text, WIDTH - start.length).join(`\n${" ".repeat(start.length)}`);
}

function verdict(
  { outcome, request, response: { status }, waitMs }: Explanation,
  applied: readonly ExplainedRule[],
): string {
  const { sentMethod, host, path } = request;
  const name = `${fitted(sentMethod, 20)} ${fitted(host + path, WIDTH / 2)}`;
  const code = status === undefined ? "" : ` (${printable(String(status))})`;
  switch (outcome) {
    case "unmatched":
      return headline("green", `✓ Not limited: no rule applies to ${name}.`);
    case "limited":
      if (waitMs !== undefined) {
        const wait = `? Waits up to ${formatDuration(waitMs)} for its turn, and is limited${code} only after that`;
        return headline("yellow", `${wait}: ${name}. ${reasonIn(applied)}`);
      }
      return headline("red", `✗ Limited${code}: ${name}. ${reasonIn(applied)}`);
    case "undecided":
      return headline(
        "yellow",
        `? Undecided${code}: ${name}. The store failed, so onError applies.`,
      );
    default:
      return headline("green", `✓ Allowed: ${name}.`);
  }
}

function headline(style: "green" | "red" | "yellow", text: string): string {
  return wrapped(text, WIDTH)
    .map((line) => styled(style, line))
    .join("\n");
}

/** Returns why a request is limited. */
function reasonIn(applied: readonly ExplainedRule[]): string {
  const denying = applied.filter(({ mode, exceeds }) => mode === "enforce" && exceeds === true);
  const [shownRule] = [...denying.filter(({ maxCost }) => maxCost !== undefined), ...denying];
  if (!shownRule) return "An enforced rule has no quota left.";
  const { rule, banMs = 0, quotas = [], cost = 1, maxCost, override } = shownRule;
  const name = `The rule ${rule}`;
  const effect = override?.effect;
  if (effect && "kind" in effect && effect.kind === "blocked") {
    return `An override of the rule ${rule} blocks the client.`;
  }
  if (banMs > 0 && maxCost === undefined)
    return `${name} has banned the client for another ${formatDuration(banMs)}.`;
  // A request takes one slot. One that is charged only by its response needs a quota of 1.
  const full = quotas.find(
    ({ remaining, concurrent }) => remaining < (concurrent ? 1 : Math.max(1, cost)),
  );
  if (full?.limit === 0) return `${name} has a limit of 0 (${full.policy}).`;
  if (full && maxCost !== undefined) {
    return `${name} can never admit it: it costs ${formatCount(cost)}, and at most ${formatCount(maxCost)} fit at once.`;
  }
  const [shown = full] = full ? [full] : quotas;
  if (!shown) return `${name} has no quota left.`;
  const { policy, limit, remaining } = shown;
  if (shown.concurrent) {
    return `${name} has ${formatCount(limit - remaining)} of ${formatCount(limit, "slot")} taken (${policy}).`;
  }
  const left = `${name} has ${formatCount(Math.max(0, remaining))} of ${formatCount(Math.max(limit, remaining))} (${policy}) left`;
  return full
    ? `${left}, and the request costs ${formatCount(Math.max(1, cost))}.`
    : `${left}, but not enough in the shard that the request draws.`;
}

function requestText(request: ExplainedRequest): string {
  const { method, sentMethod, host, path, variants, isUnambiguous, isPreflight, client } = request;
  const sent = sentMethod === method ? "" : `, sent as ${sentMethod}`;
  const preflight = isPreflight ? " (CORS preflight)" : "";
  const place = `${method} ${fitted(host, 100)}${fitted(path, MAX_TEXT)}`;
  const lines = [
    `${styled("dim", "Request")}  ${printable(`${place}${sent}${preflight}`)}`,
    `${styled("dim", "Client ")}  ${printable(client)}`,
  ];
  const others = variants.filter((variant) => variant !== path);
  if (others.length > 0) {
    lines.push("         Origins may read the path in these ways too, so rules match them too:");
    lines.push(...others.slice(0, MAX_VARIANTS).map((each) => `           ${fitted(each, 200)}`));
    const more = others.length - MAX_VARIANTS;
    if (more > 0) lines.push(`           and ${more} more`);
  } else if (!isUnambiguous) lines.push("         Origins may read the path in different ways.");
  return lines.join("\n");
}

/**
 * Describes a rule that applies: its conditions, the client's key, the counters and the values to store.
 *
 * @param effect what an enforced rule does if the request exceeds a limit
 */
function appliedRuleText(
  rule: ExplainedRule,
  isVerbose: boolean,
  now: number,
  effect: string,
): string {
  return [
    heading(rule, effect),
    ...conditionLines(rule.conditions, true, isVerbose),
    ...keyLines(rule.key, isVerbose),
    ...clientLines(rule, isVerbose),
    ...counterLines(rule, now),
    ...storedLines(rule),
  ].join("\n");
}

function heading({ rule, mode, exceeds, why }: ExplainedRule, effect: string): string {
  const name = styled("bold", printable(rule));
  // The conditions below already show why the rule matches.
  const more = why.replace(/^It matches[^.]*\.\s*/, "");
  const rest = more === "" ? "" : `: ${fitted(more, WIDTH)}`;
  if (!exceeds) return `${styled("green", "✓")} ${name} applies (${printable(mode)})${rest}`;
  const verdict =
    mode === "enforce" ? effect : `would deny the request, but its mode is ${printable(mode)}`;
  return `${styled("red", "✗")} ${name} ${verdict}${rest}`;
}

/** Describes the rules that do not apply, each in one line with the condition that decides. */
function otherRulesText(rules: readonly ExplainedRule[], isVerbose: boolean): string {
  if (rules.length === 0) return "";
  const width = Math.max(...rules.map(({ rule }) => rule.length));
  const lines = rules.flatMap(({ rule, conditions, why }) => {
    const start = `${styled("dim", "–")} ${printable(rule).padEnd(width)}  `;
    const rest = WIDTH - width - 4;
    const deciding = conditions.at(-1);
    if (!deciding || isVerbose) {
      const shown = start + fitted(why, isVerbose ? MAX_TEXT : rest);
      return [shown, ...conditionLines(conditions, false, true)];
    }
    const field = fitted(deciding.field, 60);
    const text = `${field}: ${conditionText(deciding, rest - field.length - 2)}`;
    return [start + text, ...noteLines(deciding, width + 4)];
  });
  return [styled("dim", "These rules do not apply:"), ...lines].join("\n");
}

/**
 * Returns the lines about the conditions of a rule.
 *
 * @param applies whether the rule applies. Then some parts of its exceptions may hold, but not all
 */
function conditionLines(
  conditions: readonly ExplainedCondition[],
  applies: boolean,
  isVerbose: boolean,
): string[] {
  const width = Math.max(0, ...conditions.map(({ field }) => Math.min(field.length, 40)));
  return conditions.flatMap((condition) => {
    const field = fitted(condition.field, 80).padEnd(width);
    const text = conditionText(condition, isVerbose ? 2 * MAX_TEXT : WIDTH - field.length - 8);
    const line = `    ${markOf(condition, applies)} ${field}  ${text}`;
    return [line, ...noteLines(condition, width + 8)];
  });
}

function noteLines({ note }: ExplainedCondition, indent: number): string[] {
  return note === undefined ? [] : [paragraph(" ".repeat(indent), note)];
}

/** Returns a green mark for a condition that lets the rule apply, and a red mark for one that prevents it. */
function markOf({ field, result }: ExplainedCondition, applies: boolean): string {
  if (result === "unknown") return styled("yellow", "?");
  if (!isException(field)) return result === "holds" ? styled("green", "✓") : styled("red", "✗");
  if (result === "fails") return styled("green", "✓");
  return applies ? styled("dim", "–") : styled("red", "✗");
}

/** Whether a condition is a part of an exception. If all parts hold, the rule does not count the request. */
function isException(field: string): boolean {
  return /^(?:match\.except|exempt)\b/.test(field);
}

/** Describes the value in a request and the value that a rule demands, in at most `max` characters. */
function conditionText({ field, actual, expected }: ExplainedCondition, max: number): string {
  const label = isException(field) ? "excepted" : "expected";
  const demanded = `(${label}: ${fitted(expected, MAX_TEXT)})`;
  // The request's value is shortened first, but not below MIN_ACTUAL.
  const room = Math.max(MIN_ACTUAL, max - demanded.length - 1);
  return fitted(`${fitted(actual, room)} ${demanded}`, max);
}

function labelled(label: string, text: string): string {
  return `    ${styled("dim", label.padEnd(LABEL))}${text}`;
}

function keyLines(key: readonly ExplainedKeyElement[], isVerbose: boolean): string[] {
  const max = isVerbose ? MAX_TEXT : 80;
  const lines = key.flatMap(({ alternatives, isFallback }) => [
    ...alternatives.map(({ part, result, from, value }) =>
      result === "used"
        ? `${fitted(part, max)}${value === undefined ? "" : ` = ${fitted(value, max)}`}, from ${printable(from)}`
        : `${fitted(part, max)} is absent: ${printable(from)}`,
    ),
    ...(isFallback ? ["so the client's address is used"] : []),
  ]);
  return lines.map((line, index) => labelled(index === 0 ? "key" : "", line));
}

const PASSES_AHEAD =
  "may pass before the store has decided: over the limit, once for each isolate and window";

function clientLines(rule: ExplainedRule, isVerbose: boolean): string[] {
  const { client, tier, cost, costSource = "", maxCost } = rule;
  const { limitSource = "", waitMs, async, banMs = 0, newBan, override } = rule;
  const max = isVerbose ? MAX_TEXT : 60;
  const source = /^(?:cost: \d+)?$/.test(costSource) ? "" : ` (${fitted(costSource, max)})`;
  const parts = [
    client !== undefined && printable(client),
    tier !== undefined && `tier ${fitted(tier, max)}`,
    cost !== undefined && `cost ${formatCount(cost)}${source}`,
  ].filter(Boolean);
  const lines = parts.length > 0 ? [labelled("client", parts.join(", "))] : [];
  for (const [index, each] of limitSource.split("; ").entries()) {
    if (each !== "") lines.push(labelled(index === 0 ? "limit" : "", fitted(each, 100)));
  }
  if (maxCost !== undefined) {
    const most = maxCost === 0 ? "the limit is 0" : `at most ${formatCount(maxCost)} pass at once`;
    lines.push(labelled("never fits", styled("red", most)));
  }
  if (waitMs !== undefined) lines.push(labelled("wait", `up to ${formatDuration(waitMs)}`));
  if (async) lines.push(labelled("async", PASSES_AHEAD));
  if (banMs > 0) {
    lines.push(labelled("ban", styled("red", `banned for another ${formatDuration(banMs)}`)));
  }
  if (newBan) {
    const atLeast = newBan.isAtLeast ? "at least " : "";
    lines.push(
      labelled("ban", styled("red", `begins, ${atLeast}until ${formatTime(newBan.until)}`)),
    );
  }
  if (override) {
    const { effect, expiresAt, by, reason } = override;
    const text = `${formatEffect(effect)}, until ${formatTime(expiresAt)}, by ${by}: ${reason}`;
    lines.push(labelled("override", printable(text)));
  }
  return lines;
}

function counterLines({ counters = [], cost: ruleCost = 0 }: ExplainedRule, now: number): string[] {
  if (counters.length === 0) return [];
  const headings = ["POLICY", "SHARD", "LIMIT", "COUNT", "COST", "LEFT AFTER", "MORE FROM", "IN"];
  const rows = counters.map((each): Cell[] => {
    const { policy, shard, limit, capacity, count: before, cost, countAfter, windowEnd } = each;
    const { concurrent } = each;
    const left = Math.max(0, capacity - (countAfter ?? before));
    // A request that is certainly denied is not counted, so the counter's own cost is 0.
    const exceeds = before + (concurrent ? 1 : Math.max(cost, ruleCost)) > capacity;
    return [
      policy,
      shard ?? "",
      limit,
      { text: before, style: exceeds ? "red" : "green" },
      cost,
      { text: left, style: left === 0 ? "red" : "green" },
      ...(concurrent
        ? ["counts open requests", ""]
        : [formatTime(windowEnd), formatDuration(windowEnd - now)]),
    ];
  });
  return [table(headings, rows).replace(/^(?=.)/gm, "    ")];
}

/** Returns the lines about the stored keys, and the values that the request would store. */
function storedLines({ counters = [], newBan }: ExplainedRule): string[] {
  const lines = counters.map(({ storedKey, countAfter, expiresAt }) => {
    const expires = expiresAt === undefined ? "" : `, expires ${formatTime(expiresAt)}`;
    const value =
      countAfter === undefined ? "stores nothing" : `${formatCount(countAfter)}${expires}`;
    return `${fitted(storedKey, 300)} → ${value}`;
  });
  if (newBan) lines.push(`${fitted(newBan.storedKey, 300)} → the ban`);
  return lines.map((line, index) => labelled(index === 0 ? "stored key" : "", line));
}

function responseText(response: ExplainedResponse): string {
  const { headers, body = "", originHeaders = [] } = response;
  const bodyLines = body === "" ? [] : wrapped(body, WIDTH - 2).slice(0, MAX_BODY_LINES);
  return [
    responseTitle(response),
    ...headers.map(headerLine),
    ...bodyLines.map((line) => `  ${line}`),
    ...(originHeaders.length > 0 ? ["The origin gets these headers:"] : []),
    ...originHeaders.map(headerLine),
  ].join("\n");
}

function responseTitle({ status, headers }: ExplainedResponse): string {
  if (status !== undefined) return `Weir answers ${printable(String(status))}:`;
  return headers.length === 0
    ? "The origin's response is not changed."
    : "The origin's response gets these headers:";
}

function headerLine([name, value]: readonly [string, string]): string {
  return `  ${fitted(`${name}: ${value}`, MAX_TEXT)}`;
}

import type {
  ExplainedCounter,
  ExplainedRequest,
  ExplainedResponse,
  ExplainedRule,
  Explanation,
} from "../../src/explain/explanation.ts";
import { count, duration, styled } from "../admin/text.ts";
import { printable } from "../doctor/finding.ts";
import { WIDTH } from "../print/fit-text.ts";
import { shortened, wrapped } from "./layout.ts";
import { appliedRuleText, otherRuleLines } from "./rule-text.ts";

/** The maximum number of variants of a path that are listed. */
const MAX_VARIANTS = 8;
/** The maximum number of lines of the body of Weir's own response. */
const MAX_BODY_LINES = 6;

export interface TextOptions {
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

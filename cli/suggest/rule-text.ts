import { formatCount } from "../../src/admin/format.ts";
import type { MatchInput } from "../../src/config/match.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/window.ts";
import { neverBinds } from "../warnings/limits.ts";
import { isForCredentials } from "../warnings/settings.ts";
import type { RequestedRule } from "./requested-rule.ts";
import type { ProposedLimit, WindowSuggestion } from "./suggestion.ts";

interface Limit {
  readonly window: Window;
  readonly proposed: ProposedLimit;
}

/**
 * Returns the source of a rule with the proposed limits, in shadow mode.
 *
 * @param suggestions one for each window of the rule
 */
export function ruleText(
  { name, input: { match, key }, windows, rule }: RequestedRule,
  suggestions: readonly WindowSuggestion[],
  clients: number,
): string | undefined {
  const limits = bindingLimits(windows, suggestions);
  if (limits.length === 0) return undefined;
  const lines = [
    `name: ${literal(name)},`,
    ...(match ? matchLines(match) : []),
    `key: ${literal(key)},`,
    ...linesOf(limits, clients, isSliding(rule) ? ", sliding: true" : ""),
    "// Counts and logs, but denies nothing. Remove this line to enforce the limits.",
    'mode: "shadow",',
  ];
  return ["{", ...lines.map((line) => `  ${line}`), "},"].join("\n");
}

/**
 * Whether the limits of a rule should hold for any interval: clients send credentials, so around the start of a fixed
 * window, somebody who guesses passwords would get twice the limit.
 */
export function isSliding(rule: Rule): boolean {
  return isForCredentials(rule) && rule.windows.every(({ calendar }) => !calendar);
}

/** Values of header fields and query parameters may be secrets, and reports are often shared. */
function matchLines(match: MatchInput): string[] {
  const hidden = withoutValues(match);
  const line = `match: ${literal(hidden)},`;
  if (!line.includes(asciiJson(HIDDEN))) return [line];
  return [
    `// Write the values of the header fields and query parameters in place of each "…".`,
    line,
  ];
}

/** Leaves out limits that would deny no request, because another one denies earlier. */
function bindingLimits(
  windows: readonly Window[],
  suggestions: readonly WindowSuggestion[],
): Limit[] {
  const all = windows.flatMap((window, index): Limit[] => {
    const proposed = suggestions[index]?.proposed;
    return proposed ? [{ window: withLimit(window, proposed.limit), proposed }] : [];
  });
  return all.filter(
    ({ window }) =>
      !all.some((other) => other.window !== window && neverBinds(window, other.window, false)),
  );
}

function withLimit(window: Window, limit: number): Window {
  return { ...window, limit, capacity: limit, maxReserved: 0 };
}

/** @param more further fields of each limit */
function linesOf(limits: readonly Limit[], clients: number, more: string): string[] {
  const [first, ...others] = limits as [Limit, ...Limit[]];
  if (others.length === 0) {
    return [
      figures(first, clients),
      `limit: ${first.proposed.limit},`,
      `window: ${literal(formatWindow(first.window))}${more},`,
    ];
  }
  const elements = limits.flatMap((each) => [
    figures(each, clients),
    `{ limit: ${each.proposed.limit}, window: ${literal(formatWindow(each.window))}${more} },`,
  ]);
  return ["limits: [", ...elements.map((line) => `  ${line}`), "],"];
}

function figures({ window, proposed }: Limit, clients: number): string {
  const { limit, clientsDenied, requestsDenied } = proposed;
  const where = `more than ${formatCount(limit, "request")} in ${formatWindow(window)}`;
  if (clientsDenied === 0) return `// In the log, no client sent ${where}.`;
  return `// In the log, ${formatCount(clientsDenied)} of ${formatCount(clients, "client")} sent ${where}: ${formatCount(requestsDenied, "request")} too many.`;
}

const HIDDEN = "…";

/** Returns a match with "…" in place of the values of header fields and query parameters. */
function withoutValues(match: MatchInput): MatchInput {
  const hide = (name: string, value: unknown) => {
    if (name !== "headers" && name !== "query") return value;
    const entries = Object.entries(value as object);
    return Object.fromEntries(
      entries.map(([each, expected]) => [each, typeof expected === "boolean" ? expected : HIDDEN]),
    );
  };
  return JSON.parse(JSON.stringify(match, hide));
}

/** Returns a value of JSON as a literal of TypeScript, in ASCII, so that no text can hide a part of it. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return asciiJson(value);
  const fields = Object.entries(value).map(([name, each]) => `${nameOf(name)}: ${literal(each)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}

function nameOf(name: string): string {
  // As a plain name, __proto__ would set the prototype.
  return /^[A-Za-z_]\w*$/.test(name) && name !== "__proto__" ? name : `[${asciiJson(name)}]`;
}

function asciiJson(value: unknown): string {
  return (JSON.stringify(value) ?? "undefined").replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

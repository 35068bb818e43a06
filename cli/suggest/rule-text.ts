import { formatCount } from "../../src/admin/format.ts";
import type { ConditionsInput, MatchInput } from "../../src/config/match.ts";
import type { Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/window.ts";
import { neverBinds } from "../warnings/limits.ts";
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
  { name, input: { match, key }, windows }: RequestedRule,
  suggestions: readonly WindowSuggestion[],
  clients: number,
): string | undefined {
  const limits = bindingLimits(windows, suggestions);
  if (limits.length === 0) return undefined;
  const lines = [
    `name: ${literal(name)},`,
    ...(match ? matchLines(match) : []),
    `key: ${literal(key)},`,
    ...linesOf(limits, clients),
    "// Counts and logs, but denies nothing. Remove this line to enforce the limits.",
    'mode: "shadow",',
  ];
  return ["{", ...lines.map((line) => `  ${line}`), "},"].join("\n");
}

/** Values of header fields and query parameters may be secrets, and reports are often shared. */
function matchLines(match: MatchInput): string[] {
  const hidden = withoutValues(match);
  const line = `match: ${literal(hidden)},`;
  if (!hasHiddenValue(hidden)) return [line];
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

function linesOf(limits: readonly Limit[], clients: number): string[] {
  const [first, ...others] = limits as [Limit, ...Limit[]];
  if (others.length === 0) {
    return [
      figures(first, clients),
      `limit: ${first.proposed.limit},`,
      `window: ${literal(formatWindow(first.window))},`,
    ];
  }
  const elements = limits.flatMap((each) => [
    figures(each, clients),
    `{ limit: ${each.proposed.limit}, window: ${literal(formatWindow(each.window))} },`,
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

/** Returns conditions with "…" in place of the values of header fields and query parameters. */
export function withoutValues({ except, ...conditions }: MatchInput): MatchInput {
  return { ...hidden(conditions), ...(except && { except: hidden(except) }) };
}

function hidden({ headers, query, ...others }: ConditionsInput): ConditionsInput {
  return {
    ...others,
    ...(headers && { headers: hiddenIn(headers) }),
    ...(query && { query: hiddenIn(query) }),
  };
}

type Values = NonNullable<ConditionsInput["headers"]>;

function hiddenIn(values: Values): Values {
  const entries = Object.entries(values).map(
    ([name, value]) => [name, typeof value === "boolean" ? value : HIDDEN] as const,
  );
  return Object.fromEntries(entries);
}

/** Whether {@link withoutValues} has hidden a value. */
export function hasHiddenValue({ except, headers, query }: MatchInput): boolean {
  const maps = [headers, query, except?.headers, except?.query];
  return maps.some((values) => Object.values(values ?? {}).includes(HIDDEN));
}

/** The maximum length of a list or an object on one line, in characters. */
const MAX_LINE = 80;

/** Returns a value of JSON as a literal of TypeScript, in ASCII, so that no text can hide a part of it. */
export function literal(value: unknown, indent = "  "): string {
  if (typeof value !== "object" || value === null) return asciiJson(value);
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((each) => literal(each, inner))
    : Object.entries(value).map(([name, each]) => `${nameOf(name)}: ${literal(each, inner)}`);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (parts.length === 0) return open + close;
  const space = isList ? "" : " ";
  const line = `${open}${space}${parts.join(", ")}${space}${close}`;
  if (line.length <= MAX_LINE && !line.includes("\n")) return line;
  return [open, ...parts.map((part) => `${inner}${part},`), `${indent}${close}`].join("\n");
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

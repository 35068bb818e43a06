import type { MatchInput } from "../../src/config/match.ts";
import type { Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/windows.ts";
import { count } from "../admin/text.ts";
import { counted } from "../print/numbers.ts";
import { neverBinds } from "../warnings/limits.ts";
import { hasHiddenValue, withoutValues } from "./hidden-values.ts";
import { literal } from "./literal.ts";
import type { RequestedRule } from "./requested-rule.ts";
import type { ProposedLimit, WindowSuggestion } from "./suggestion.ts";

/** A window, and the limit that the rule has for it. */
interface Limit {
  readonly window: Window;
  readonly proposed: ProposedLimit;
}

/**
 * Returns the source of a rule with the proposed limits, in shadow mode. For a rule that exists already, returns
 * the fields with its limits.
 *
 * @param suggestions one for each window of the rule
 */
export function ruleText(
  { name, file, input, windows }: RequestedRule,
  suggestions: readonly WindowSuggestion[],
  clients: number,
): string | undefined {
  const limits = bindingLimits(windows, suggestions);
  if (limits.length === 0) return undefined;
  const limitLines = linesOf(limits, clients);
  if (!input) {
    return [`// In the rule ${literal(name)} of ${printableFile(file)}:`, ...limitLines].join("\n");
  }
  const { match, key } = input;
  const lines = [
    `name: ${literal(name)},`,
    ...(match ? matchLines(match) : []),
    `key: ${literal(key)},`,
    ...limitLines,
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

/** A comment ends at the end of its line. */
function printableFile(file = ""): string {
  return literal(file).slice(1, -1);
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
  const where = `more than ${counted(limit, "request")} in ${formatWindow(window)}`;
  if (clientsDenied === 0) return `// In the log, no client sent ${where}.`;
  return `// In the log, ${count(clientsDenied)} of ${counted(clients, "client")} sent ${where}: ${counted(requestsDenied, "request")} too many.`;
}

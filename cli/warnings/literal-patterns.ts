import type { Conditions } from "../../src/config/conditions.ts";
import type { NamedCondition, ValuePattern } from "../../src/config/value-condition.ts";
import type { LocalFinding } from "../finding.ts";

/** Header fields in whose values an asterisk has a meaning, such as the types of `accept`. */
const WITH_ASTERISK = /^(accept(-.+)?|access-control-.+|if-(none-)?match|cookie|content-range)$/;

/**
 * Warns of texts such as `free*` and `/^free/` in conditions on header fields and query parameters.
 * Such a text is valid, but Weir compares it character by character.
 *
 * @param rule the name of the rule
 * @param place the path of the conditions
 */
export function literalPatternWarnings(
  rule: string,
  { headers = [], query = [] }: Conditions,
  place: string,
): LocalFinding[] {
  return [
    ...headers
      .filter(({ name }) => !WITH_ASTERISK.test(name))
      .flatMap((header) => warningsOf(header, rule, `${place}.headers`)),
    ...query.flatMap((parameter) => warningsOf(parameter, rule, `${place}.query`)),
  ];
}

function warningsOf(
  { name, expected }: NamedCondition,
  rule: string,
  place: string,
): LocalFinding[] {
  if (typeof expected === "boolean") return [];
  const [found] = expected.flatMap((pattern) => mistakeIn(pattern) ?? []);
  if (!found) return [];
  return [
    {
      code: "literal-pattern",
      severity: "warning",
      path: `${place}[${JSON.stringify(name)}]`,
      message: `The rule "${rule}" compares the value with each character of the text, so ${found.what} has no special meaning`,
      cure: found.cure,
    },
  ];
}

/** A notation of other programs, and the cure. */
interface Mistake {
  readonly what: "the asterisk" | "the regular expression";
  readonly cure: string;
}

const NO_PATTERN = 'Write the whole text, { prefix: "…" }, or a list of them';

function mistakeIn(pattern: ValuePattern): Mistake | undefined {
  const text = typeof pattern === "string" ? pattern : pattern.prefix;
  const expression = expressionIn(text);
  if (expression !== undefined) {
    return { what: "the regular expression", cure: expressionCure(expression) };
  }
  const what = "the asterisk";
  if (/^\*+$/.test(text)) return { what, cure: "Write true, for a value of any text" };
  const [, start] = /^([^*]+)\*+$/.exec(text) ?? [];
  if (start !== undefined) return { what, cure: `Write ${prefixOf(start)}` };
  return /^\*|\*$/.test(text) ? { what, cure: NO_PATTERN } : undefined;
}

/** Returns the expression in a text such as `/^free/i`, `^free` or `free.*`, without the slashes. */
function expressionIn(text: string): string | undefined {
  const [, inSlashes = ""] = /^\/(.+)\/[a-z]*$/s.exec(text) ?? [];
  // Without one of these signs, the text may be a path, such as /a/b/.
  if (/^\^|\$$|[.)\]][*+]|\\[dswDSW]/.test(inSlashes)) return inSlashes;
  return /^\^.|\.[*+]\$?$/.test(text) ? text : undefined;
}

/** Suggests a text, a prefix, or a list of them, if the expression means one of these. */
function expressionCure(expression: string): string {
  const middle = expression.replace(/^\^|\$$|(\.[*+])+\$?$/g, "").replace(/^\((\?:)?(.*)\)$/, "$2");
  const texts = middle.split("|");
  const isFromStart = /^\^|\.[*+]$/.test(expression);
  if (!isFromStart || !texts.every((text) => /^[\w /:@-]+$/.test(text))) return NO_PATTERN;
  const isWhole = /(^|[^*+])\$$/.test(expression);
  const written = texts.map(isWhole ? textOf : prefixOf);
  return `Write ${written.length === 1 ? written[0] : `[${written.join(", ")}]`}`;
}

function prefixOf(text: string): string {
  return `{ prefix: ${textOf(text)} }`;
}

/** Writes a short text of letters only. Other texts may be credentials, and logs have many readers. */
function textOf(text: string): string {
  return /^[A-Za-z][A-Za-z _-]{0,11}$/.test(text) ? JSON.stringify(text) : '"…"';
}

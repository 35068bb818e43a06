import type { ExplainedCondition } from "../../src/explain/explanation.ts";
import { styled } from "../admin/text.ts";
import { WIDTH } from "../print/fit-text.ts";
import { shortened, wrapped } from "./layout.ts";

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
export function conditionLines(
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
export function conditionText(
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

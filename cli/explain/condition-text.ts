import type { ExplainedCondition } from "../../src/explain/explanation.ts";
import { styled } from "../admin/text.ts";
import { shortened, WIDTH, wrapped } from "./layout.ts";

/** The maximum length of what a request has, in characters, so that the line also shows what is demanded. */
const MAX_ACTUAL = 44;

const MARKS = { holds: "✓", fails: "✗", unknown: "?" } as const;
const STYLES = { holds: "green", fails: "red", unknown: "yellow" } as const;

/**
 * Returns the lines about the conditions of a rule.
 *
 * @param isShort whether long texts are shortened
 */
export function conditionLines(
  conditions: readonly ExplainedCondition[],
  indent: number,
  isShort: boolean,
): string[] {
  const width = Math.max(0, ...conditions.map(({ field }) => Math.min(field.length, 40)));
  return conditions.flatMap((condition) => {
    const { field, result, note } = condition;
    const mark = styled(STYLES[result] ?? "yellow", MARKS[result] ?? "?");
    const start = `${" ".repeat(indent)}${mark} ${shortened(field, 80).padEnd(width)}  `;
    const texts = conditionText(condition, isShort ? WIDTH - indent - width - 4 : undefined);
    const notes = note ? wrapped(" ".repeat(indent + width + 4), note) : [];
    return [start + texts, ...notes];
  });
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
  const given = max === undefined ? shortened(actual, 2000) : shortened(actual, MAX_ACTUAL);
  const text = `${given} (${label}: ${shortened(expected, 2000)})`;
  return max === undefined ? text : shortened(text, max);
}

/** Whether a request is not counted if this condition and all others like it hold. */
export function isException(field: string): boolean {
  return /^(?:match\.except|exempt)\b/.test(field);
}

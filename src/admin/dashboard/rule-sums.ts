import type { StatisticsReport } from "../../control/protocol.ts";
import { noRuleSums } from "../../statistics/add-sums.ts";
import type { RuleSums } from "../../statistics/sums.ts";
import type { RuleView } from "../operations.ts";
import { percentText } from "./format.ts";

/** A rule with its sums in a report. */
export interface RuleRow {
  readonly rule: RuleView;
  readonly sums: RuleSums;
}

/** Returns the sums of a rule; zeros if the report has none. */
export function sumsOf(
  report: Pick<StatisticsReport, "rules"> | undefined,
  name: string,
): RuleSums {
  // A rule may have the name "constructor", which every object inherits.
  const sums = report && Object.hasOwn(report.rules, name) ? report.rules[name] : undefined;
  return sums ?? noRuleSums();
}

/** Returns the number of requests that were over the limit of a rule, whether it denied them or not. */
export function exceededCount({ limited, marked, shadowLimited }: RuleSums): number {
  return limited + marked + shadowLimited;
}

/** Returns the share of the requests that were over the limit of a rule, from 0 to 1. */
export function exceededShare(sums: RuleSums): number {
  return sums.requests > 0 ? exceededCount(sums) / sums.requests : 0;
}

/**
 * Returns the largest part of the limit that any client of a rule had used, as a percentage; `–` if it is
 * unknown or 0.
 */
export function peakText({ peak }: RuleSums): string {
  return peak > 0 ? percentText(peak, 1) : "–";
}

const BY = {
  name: ({ rule: one }: RuleRow, { rule: other }: RuleRow) => (one.name < other.name ? -1 : 1),
  requests: (one: RuleRow, other: RuleRow) => other.sums.requests - one.sums.requests,
  limited: (one: RuleRow, other: RuleRow) => other.sums.limited - one.sums.limited,
  peak: (one: RuleRow, other: RuleRow) => other.sums.peak - one.sums.peak,
  share: (one: RuleRow, other: RuleRow) => exceededShare(other.sums) - exceededShare(one.sums),
  shadow: (one: RuleRow, other: RuleRow) => other.sums.shadowLimited - one.sums.shadowLimited,
} as const;

/** The orders in which rules can be listed. */
export type RuleOrder = keyof typeof BY;

export function isRuleOrder(text: string | undefined): text is RuleOrder {
  return text !== undefined && Object.hasOwn(BY, text);
}

/** Returns rules in an order; rules that are equal keep the order of the configuration. */
export function sortedRules(rows: readonly RuleRow[], order: RuleOrder): RuleRow[] {
  return rows.toSorted(BY[order]);
}

/** Returns the rules whose name, match, key or mode contains a text, in any case. */
export function filteredRules(rows: readonly RuleRow[], text: string): RuleRow[] {
  const sought = text.trim().toLowerCase();
  return rows.filter(({ rule }) => searchTextOf(rule).includes(sought));
}

/** Returns the text in which a filter looks. */
export function searchTextOf({ name, match, key, mode }: RuleView): string {
  return `${name} ${match} ${key} ${mode}`.toLowerCase();
}

import type { StatisticsQuery, StatisticsReport } from "../../control/protocol.ts";
import { noRuleSums, type RuleSums } from "../../statistics/sums.ts";
import { formatCount, formatPercent } from "../format.ts";
import type { RuleView } from "../operations.ts";
import { Chart } from "./chart.ts";
import { Bar, type Column, Facts, ModeBadge, RuleLink, rulePath } from "./components.ts";
import { type DashboardContext, mayChange } from "./forms.tsx";
import { attempt, faultPage, page, RangeSwitch, Unavailable } from "./layout.tsx";
import { LimitedClients, OverrideCard, RuleOverrideForm } from "./overrides-page.tsx";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import { ruleCharts } from "./traffic-charts.ts";

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
function exceededShare(sums: RuleSums): number {
  return sums.requests > 0 ? exceededCount(sums) / sums.requests : 0;
}

/**
 * Returns the largest part of the limit that any client of a rule had used, as a percentage; `–` if it is
 * unknown or 0.
 */
function peakText({ peak }: RuleSums): string {
  return peak > 0 ? formatPercent(peak, 1) : "–";
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

/** The columns that tables of rules have. */
export const RULE_COLUMNS = {
  rule: {
    label: "Rule",
    cell: ({ rule }) => (
      <>
        <RuleLink rule={rule.name} /> <ModeBadge mode={rule.mode} />
        {rule.override && <span class="badge override">override</span>}
      </>
    ),
  },
  requests: { label: "Requests", number: true, cell: ({ sums }) => formatCount(sums.requests) },
  peak: {
    label: "Peak use",
    number: true,
    cell: ({ rule, sums }) => (
      <>
        {peakText(sums)}
        <Bar share={sums.peak} tone={rule.mode === "shadow" ? "shadow" : "limited"} />
      </>
    ),
  },
  share: {
    label: "Over the limit",
    number: true,
    cell: ({ sums }) => formatPercent(exceededCount(sums), sums.requests),
  },
} as const satisfies Record<string, Column<RuleRow>>;

export async function rulePage(c: DashboardContext) {
  const { operations } = c.var;
  const name = c.req.param("name") ?? "";
  const range = rangeOf(c.req.query("range"));
  const now = Date.now();
  const query = queryOf(range, now, name);
  const [rules, report] = await Promise.all([
    attempt(() => operations.rules()),
    attempt(() => operations.statistics(query)),
  ]);
  if (rules.fault !== undefined) return faultPage(c, "The rules cannot be read", rules.fault, 503);
  const rule = rules.value.find((each) => each.name === name);
  if (!rule) return faultPage(c, "No such rule", `The configuration has no rule ${name}.`, 404);
  return page(c, {
    title: rule.name,
    section: "/_weir/rules",
    refresh: `${rulePath(name)}?range=${range.id}`,
    children: (
      <>
        <div class="heading">
          <h1>
            <bdi>{rule.name}</bdi> <ModeBadge mode={rule.mode} always />
          </h1>
          <RangeSwitch path={rulePath(name)} range={range} />
        </div>
        <p class="hint">
          Why does it apply to a request, or not? <a href="/_weir/explain">Explain a request</a>
        </p>
        <div class="card">
          <Facts facts={factsOf(rule)} />
        </div>
        {report.value ? (
          <Traffic rule={rule} report={report.value} query={query} range={range} now={now} />
        ) : (
          <Unavailable what="The traffic" fault={report.fault} />
        )}
        <div class="columns">
          {report.value && (
            <LimitedClients
              clients={report.value.clients}
              from={report.value.clientsFrom}
              now={now}
              ofOneRule
            />
          )}
          <section class="card">
            <h2>Override of this rule</h2>
            {rule.override ? (
              <OverrideCard c={c} override={rule.override} now={now} />
            ) : (
              <p class="none">None: the rule does what the configuration says.</p>
            )}
            {mayChange(c) && <RuleOverrideForm c={c} rule={rule} />}
          </section>
        </div>
      </>
    ),
  });
}

function factsOf(rule: RuleView): [string, string][] {
  const extras = [rule.hasTiers && "tiers", rule.hasBan && "a ban"].filter(Boolean).join(" and ");
  const facts: [string, string | false][] = [
    ["Matches", rule.match],
    ["Counts", rule.key],
    ...rule.limits.map(({ policy, limit, window }): [string, string] => [
      policy,
      `${formatCount(limit)} in ${window}`,
    ]),
    ["If the store fails", rule.onError],
    ["Has", extras],
    ["Configured mode", rule.configuredMode !== rule.mode && rule.configuredMode],
  ];
  return facts.filter((fact): fact is [string, string] => Boolean(fact[1]));
}

interface TrafficProps {
  readonly rule: RuleView;
  readonly report: StatisticsReport;
  readonly query: StatisticsQuery;
  readonly range: Range;
  readonly now: number;
}

function Traffic({ rule, report, query, range, now }: TrafficProps) {
  const sums = sumsOf(report, rule.name);
  const charts = ruleCharts(query, report.buckets, report.ruleBuckets ?? [], now);
  const { bucketsPerRow, resolution } = range;
  return (
    <>
      <p class="lead" id="lead" data-live>
        <b>{formatCount(sums.requests)}</b> requests, of which{" "}
        <b>{formatPercent(exceededCount(sums), sums.requests)}</b> were over the limit:{" "}
        {formatCount(sums.limited)} denied, {formatCount(sums.shadowLimited)} would have been denied
        in shadow mode, {formatCount(sums.marked)} marked. Peak use of the limit by one client:{" "}
        <b>{peakText(sums)}</b>
      </p>
      <div class="columns">
        <Chart
          id="requests"
          title={`Requests per ${resolution}`}
          data={charts.requests}
          bucketsPerRow={bucketsPerRow}
        />
        <Chart
          id="denials"
          title="Live and shadow denials"
          data={charts.denials}
          bucketsPerRow={bucketsPerRow}
        />
      </div>
    </>
  );
}

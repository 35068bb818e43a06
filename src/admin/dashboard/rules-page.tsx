import { formatCount, formatPercent } from "../format.ts";
import { Bar, Empty, ModeBadge, RangeSwitch, RuleLink, Table, Unavailable } from "./components.tsx";
import type { DashboardContext } from "./context.ts";
import { attempt } from "./forms.tsx";
import { page } from "./layout.tsx";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import {
  exceededCount,
  filteredRules,
  isRuleOrder,
  peakText,
  type RuleOrder,
  type RuleRow,
  searchTextOf,
  sortedRules,
  sumsOf,
} from "./rule-page.tsx";

interface Listing {
  readonly text: string;
  readonly order: RuleOrder | undefined;
  readonly range: Range;
}

/** The page with all rules. */
export async function rulesPage(c: DashboardContext) {
  const { operations } = c.var;
  const order = c.req.query("sort");
  const listing: Listing = {
    text: c.req.query("q") ?? "",
    order: isRuleOrder(order) ? order : undefined,
    range: rangeOf(c.req.query("range")),
  };
  const [rules, report] = await Promise.all([
    attempt(() => operations.rules()),
    attempt(() => operations.statistics(queryOf(listing.range, Date.now()))),
  ]);
  const rows = (rules.value ?? []).map((rule) => ({ rule, sums: sumsOf(report.value, rule.name) }));
  const filtered = filteredRules(rows, listing.text);
  const shown = listing.order ? sortedRules(filtered, listing.order) : filtered;
  return page(c, {
    title: "Rules",
    section: "/_weir/rules",
    children: (
      <>
        <div class="heading">
          <h1>Rules</h1>
          <RangeSwitch path="/_weir/rules" range={listing.range} />
        </div>
        {rules.fault !== undefined && <Unavailable what="The rules" fault={rules.fault} />}
        {report.fault !== undefined && <Unavailable what="The traffic" fault={report.fault} />}
        <FilterForm listing={listing} shown={shown.length} total={rows.length} />
        {shown.length > 0 ? (
          <RulesTable rows={shown} listing={listing} />
        ) : (
          rules.value && (
            <Empty title={rows.length === 0 ? "No rules yet" : "No rule contains this text"}>
              <p>
                {rows.length === 0 ? (
                  <>
                    Add one to <code>weir.config.ts</code>, and deploy.
                  </>
                ) : (
                  <a href="/_weir/rules">Show all rules</a>
                )}
              </p>
            </Empty>
          )
        )}
      </>
    ),
  });
}

interface FilterProps {
  readonly listing: Listing;
  readonly shown: number;
  readonly total: number;
}

function FilterForm({ listing: { text, order, range }, shown, total }: FilterProps) {
  return (
    <search>
      <form class="filter" method="get" action="/_weir/rules">
        <label>
          <span class="hidden">Filter the rules by name, path, key or mode</span>
          <input
            type="search"
            name="q"
            value={text}
            placeholder="Filter by name, path, key or mode"
            data-filter="rules-table"
          />
        </label>
        {order && <input type="hidden" name="sort" value={order} />}
        <input type="hidden" name="range" value={range.id} />
        <button type="submit">Filter</button>
        <output data-filter-count={formatCount(total, "rule")}>
          {shown === total
            ? formatCount(total, "rule")
            : `${formatCount(shown)} of ${formatCount(total, "rule")}`}
        </output>
      </form>
    </search>
  );
}

const COLUMNS: readonly { order: RuleOrder; label: string; number?: boolean }[] = [
  { order: "name", label: "Rule" },
  { order: "requests", label: "Requests", number: true },
  { order: "limited", label: "Limited", number: true },
  { order: "peak", label: "Peak use", number: true },
  { order: "share", label: "Over the limit", number: true },
];

function RulesTable({ rows, listing }: { rows: readonly RuleRow[]; listing: Listing }) {
  const { text, range } = listing;
  const [name, ...counts] = COLUMNS.map(({ order, label, number = false }) => {
    const query = new URLSearchParams({ sort: order, range: range.id, ...(text && { q: text }) });
    const isSorted = order === listing.order;
    return {
      label: <a href={`/_weir/rules?${query}`}>{label}</a>,
      number,
      sort: isSorted ? (order === "name" ? "ascending" : "descending") : undefined,
    } as const;
  });
  const columns = [
    ...(name ? [name] : []),
    { label: "Match" },
    { label: "Key" },
    { label: "Limits" },
    ...counts,
  ];
  return (
    <div class="card">
      <Table caption="Rules" columns={columns} id="rules-table">
        {rows.map((row) => (
          <Row {...row} />
        ))}
      </Table>
    </div>
  );
}

function Row({ rule, sums }: RuleRow) {
  return (
    <tr data-text={searchTextOf(rule)}>
      <th scope="row">
        <RuleLink rule={rule.name} /> <ModeBadge mode={rule.mode} />
        {rule.override && <span class="badge override">override</span>}
      </th>
      <td class="match">
        <bdi>{rule.match}</bdi>
      </td>
      <td>
        <code>
          <bdi>{rule.key}</bdi>
        </code>
      </td>
      <td>
        {rule.limits.map(({ limit, window }) => `${formatCount(limit)} / ${window}`).join(", ")}
      </td>
      <td class="number">{formatCount(sums.requests)}</td>
      <td class="number">{formatCount(sums.limited)}</td>
      <td class="number">
        {peakText(sums)}
        <Bar share={sums.peak} tone={rule.mode === "shadow" ? "shadow" : "limited"} />
      </td>
      <td class="number">{formatPercent(exceededCount(sums), sums.requests)}</td>
    </tr>
  );
}

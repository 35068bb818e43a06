import { formatCount } from "../format.ts";
import { type Column, Empty, html, Table } from "./components.ts";
import type { DashboardContext } from "./forms.tsx";
import { attempt, page, RangeSwitch, Unavailable } from "./layout.tsx";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import {
  filteredRules,
  isRuleOrder,
  RULE_COLUMNS,
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

function RulesTable({ rows, listing }: { rows: readonly RuleRow[]; listing: Listing }) {
  const { text, range } = listing;
  const sorted = (order: RuleOrder, column: Column<RuleRow>): Column<RuleRow> => {
    const query = new URLSearchParams({ sort: order, range: range.id, ...(text && { q: text }) });
    const isSorted = order === listing.order;
    return {
      ...column,
      label: <a href={`/_weir/rules?${query}`}>{column.label}</a>,
      sort: isSorted ? (order === "name" ? "ascending" : "descending") : undefined,
    };
  };
  const columns: Column<RuleRow>[] = [
    sorted("name", RULE_COLUMNS.rule),
    { label: "Match", class: "match", cell: ({ rule }) => <bdi>{rule.match}</bdi> },
    {
      label: "Key",
      cell: ({ rule }) => (
        <code>
          <bdi>{rule.key}</bdi>
        </code>
      ),
    },
    {
      label: "Limits",
      cell: ({ rule }) =>
        rule.limits.map(({ limit, window }) => `${formatCount(limit)} / ${window}`).join(", "),
    },
    sorted("requests", RULE_COLUMNS.requests),
    sorted("limited", {
      label: "Limited",
      number: true,
      cell: ({ sums }) => formatCount(sums.limited),
    }),
    sorted("peak", RULE_COLUMNS.peak),
    sorted("share", RULE_COLUMNS.share),
  ];
  return (
    <div class="card">
      <Table
        caption="Rules"
        id="rules-table"
        columns={columns}
        rows={rows}
        data={({ rule }) => html` data-text="${searchTextOf(rule)}"`}
      />
    </div>
  );
}

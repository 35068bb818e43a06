import { formatCount } from "../format.ts";
import { type Column, code, empty, foreign, type Html, html, table } from "./components.ts";
import type { DashboardContext } from "./forms.ts";
import { attempt, headingWithRanges, page, unavailable } from "./layout.ts";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import {
  isRuleOrder,
  limitText,
  RULE_COLUMNS,
  type RuleOrder,
  type RuleRow,
  sortedRules,
  sumsOf,
} from "./rule-page.ts";

interface Listing {
  /** The text to find in the name, match, key or mode of rules. Case does not matter. */
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
  const sought = listing.text.trim().toLowerCase();
  const found = rows.filter(({ rule: { name, match, key, mode } }) => {
    return `${name} ${match} ${key} ${mode}`.toLowerCase().includes(sought);
  });
  const shown = listing.order ? sortedRules(found, listing.order) : found;
  const none =
    rows.length === 0
      ? empty("No rules yet", html`<p>Add one to <code>weir.config.ts</code>, and deploy.</p>`)
      : empty("No rule contains this text", html`<p><a href="/_weir/rules">Show all rules</a></p>`);
  return page(c, {
    title: "Rules",
    section: "/_weir/rules",
    content: html`${headingWithRanges("Rules", "/_weir/rules", listing.range)}
${rules.fault !== undefined && unavailable("The rules", rules.fault)}
${report.fault !== undefined && unavailable("The traffic", report.fault)}
${filterForm(listing, shown.length, rows.length)}
${shown.length > 0 ? html`<div class="card">${rulesTable(shown, listing)}</div>` : rules.value && none}`,
  });
}

function filterForm({ text, order, range }: Listing, shown: number, total: number): Html {
  const all = formatCount(total, "rule");
  return html`<search><form class="row" method="get" action="/_weir/rules">
<label><span class="hidden">Filter the rules by name, path, key or mode</span>
<input type="search" name="q" value="${text}" placeholder="Filter by name, path, key or mode"></label>
${order && html`<input type="hidden" name="sort" value="${order}">`}
<input type="hidden" name="range" value="${range.id}"><button type="submit">Filter</button>
<output>${shown === total ? all : `${formatCount(shown)} of ${all}`}</output></form></search>`;
}

function rulesTable(rows: readonly RuleRow[], { text, range, order: current }: Listing): Html {
  const sorted = (order: RuleOrder, column: Column<RuleRow>): Column<RuleRow> => {
    const query = new URLSearchParams({ sort: order, range: range.id, ...(text && { q: text }) });
    const direction = order === "name" ? "ascending" : "descending";
    return {
      ...column,
      label: html`<a href="/_weir/rules?${query.toString()}">${column.label}</a>`,
      sort: order === current ? direction : undefined,
    };
  };
  return table<RuleRow>({
    caption: "Rules",
    rows,
    columns: [
      sorted("name", RULE_COLUMNS.rule),
      { label: "Match", class: "any", cell: ({ rule }) => foreign(rule.match) },
      { label: "Key", cell: ({ rule }) => code(rule.key) },
      {
        label: "Limits",
        cell: ({ rule }) =>
          rule.limits
            .map((each) => limitText(each) + (each.concurrent ? " open" : ` / ${each.window}`))
            .join(", "),
      },
      sorted("requests", RULE_COLUMNS.requests),
      sorted("limited", {
        label: "Limited",
        number: true,
        cell: ({ sums }) => formatCount(sums.limited),
      }),
      sorted("peak", RULE_COLUMNS.peak),
      sorted("share", RULE_COLUMNS.share),
    ],
  });
}

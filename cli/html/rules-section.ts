import { countText } from "../../src/admin/dashboard/format.ts";
import type { RuleReport } from "../replay/report.ts";
import { type Html, html } from "./markup.ts";
import { ruleCard } from "./rule-card.ts";
import { listedRules, rulesTable } from "./rules-table.ts";
import type { StatedFacts } from "./stated-facts.ts";

/** How many clients all rules together list, so that a report with many rules stays small. */
const MAX_ROWS = 100;
/** Each rule lists at least and at most this many clients. */
const MIN_RULE_ROWS = 3;
const MAX_RULE_ROWS = 20;
/** How many rules have a chart. */
const MAX_CHARTS = 40;

/** All rules as a table, and the details of those that denied requests. */
export function rulesSection(rules: readonly RuleReport[], stated: StatedFacts): Html {
  const listed = listedRules(rules);
  const cards = listed.filter(({ id }) => id !== undefined);
  const share = Math.floor(MAX_ROWS / Math.max(1, cards.length));
  const rows = Math.min(MAX_RULE_ROWS, Math.max(MIN_RULE_ROWS, share));
  return html`${
    stated.statuses &&
    html`<p class="hint">“Had succeeded” counts the requests over the limit that the log shows with a status below 400: those that users would have missed.</p>
`
  }<div class="card">${filterForm(rules.length)}${rulesTable(listed, stated)}</div>
${cards.map(({ rule, id = "" }, index) => ruleCard(rule, { id, rows, hasChart: index < MAX_CHARTS, stated }))}${
  cards.length > MAX_CHARTS &&
  html`<p class="hint">Only the ${countText(MAX_CHARTS)} rules with the most denied requests have charts.</p>
`
}`;
}

/** The script shows the form, because it does nothing without the script. */
function filterForm(count: number): Html | false {
  return (
    count > 1 &&
    html`<form class="filter" hidden><label><span class="hidden">Filter the rules by name, path, key or client</span><input type="search" placeholder="Filter by rule, path, key or client" autocomplete="off" spellcheck="false"></label><output></output></form>
`
  );
}

import { formatCount } from "../format.ts";
import type { ClientSelector } from "../operations.ts";
import { ACTIONS } from "./audit-page.ts";
import { chart } from "./chart.ts";
import { denialsPath, exactTime, foreign, type Html, html, ruleLink, table } from "./components.ts";
import { modeOf, retryOf } from "./denials-page.ts";
import type { DashboardContext } from "./forms.ts";
import { attempt, unavailable } from "./layout.ts";
import { queryOf } from "./ranges.ts";
import { denialChart } from "./traffic-charts.ts";

/** The charts of a client: their titles and buckets. */
const CHARTS = [
  { title: "Denials per minute, 1 hour", resolution: "minute", count: 60 },
  { title: "Denials per hour, 1 day", resolution: "hour", count: 24 },
  { title: "Denials per day, 7 days", resolution: "day", count: 7 },
] as const;

/** The number of newest changes of all operators among which those of the client are found. */
const MAX_CHANGES = 500;
/** The maximum number of lines. */
const MAX_LINES = 50;
const MAX_AGE_MS = 7 * 86_400_000;

/** Reads the kept denials of a client, and the newest changes of operators. Never rejects. */
export async function readHistory(c: DashboardContext, selector: ClientSelector, rule?: string) {
  const { operations } = c.var;
  const [denials, changes] = await Promise.all([
    attempt(() => operations.denials({ rule }, selector)),
    attempt(() => operations.audit(MAX_CHANGES)),
  ]);
  return { denials, changes, rule };
}

/**
 * What happened to a client in the last 7 days: its denials, and the changes of operators.
 *
 * @param clients the client's identities
 */
export function clientHistory(
  { denials, changes, rule }: Awaited<ReturnType<typeof readHistory>>,
  clients: readonly string[],
): Html {
  if (denials.fault !== undefined) return unavailable("The denials", denials.fault);
  const now = Date.now();
  const own = new Set([...clients, ...denials.value.map(({ client }) => client)]);
  const made = (changes.value ?? []).filter(({ client, at, ...change }) => {
    const isOfRule = rule === undefined || change.rule === rule;
    return client !== undefined && own.has(client) && isOfRule && now - at < MAX_AGE_MS;
  });
  const denied = denials.value.map((each) => ({
    ...{ at: each.lastAt, rule: each.rule, what: modeOf(each.mode) },
    details: html`${formatCount(each.count, "request")} by ${foreign(each.policy)}; may retry: ${retryOf(each, now)}`,
  }));
  const changed = made.map(({ at, rule: of, action, by, why = "" }) => ({
    ...{ at, rule: of, what: ACTIONS[action] ?? action },
    details: html`${foreign(by)}: ${foreign(why)}`,
  }));
  const lines = [...denied, ...changed].sort((one, other) => other.at - one.at);
  const list = table<(typeof lines)[number]>({
    caption: "What happened to the client, the newest first",
    cards: true,
    rows: lines.slice(0, MAX_LINES),
    columns: [
      { label: "Time", cell: ({ at }) => exactTime(at, now) },
      { label: "What", class: "nowrap", cell: ({ what }) => what },
      { label: "Rule", cell: (line) => line.rule !== undefined && ruleLink(line.rule) },
      { label: "Details", class: "any", cell: ({ details }) => details },
    ],
  });
  const charts = CHARTS.map(({ title, ...range }) =>
    chart({ title, data: denialChart(queryOf(range, now), denials.value, now) }),
  );
  const [only] = own.size === 1 ? own : [];
  const all =
    only !== undefined &&
    html` <a class="note" href="${denialsPath({ client: only, rule })}">All denials</a>`;
  return html`${denials.value.length > 0 && html`<div class="columns">${charts}</div>`}
<section class="card" id="history"><h2>Last 7 days${all}</h2>${lines.length > 0 ? list : html`<p class="note">No denials, and no changes.</p>`}
<p class="note">At most the newest ${MAX_LINES} entries. Of all clients together, 2,000 denials are kept. Isolates upload them every 5 to
25 seconds. Only denials of rules that counted the client by this value are shown.</p></section>`;
}

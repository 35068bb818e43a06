import type { Config } from "../../config/schema.ts";
import type { StatisticsReport, Totals } from "../../control/protocol.ts";
import { formatCount, formatDollars, formatPercent, formatShortCount } from "../format.ts";
import { quantileText, sumsOfBuckets } from "../traffic.ts";
import { chart } from "./chart.ts";
import {
  denialsPath,
  empty,
  type Html,
  html,
  notice,
  part,
  relativeTime,
  sign,
  type Tile,
  type Tone,
  table,
  tiles,
} from "./components.ts";
import { monthlyDollars, storeCost } from "./cost.ts";
import type { DashboardContext } from "./forms.ts";
import { attempt, headingWithRanges, page, unavailable } from "./layout.ts";
import { limitedClients } from "./overrides-page.ts";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import { RULE_COLUMNS, type RuleRow, sortedRules, sumsOf } from "./rule-page.ts";
import { overviewCharts } from "./traffic-charts.ts";

interface Traffic {
  readonly report: StatisticsReport;
  /** Undefined if the totals cannot be read. */
  readonly totals: Totals | undefined;
  readonly range: Range;
  readonly store: Config["store"];
  readonly now: number;
}

/** The numbers at the top of the overview. */
function tilesOf({ report, totals, range, store, now }: Traffic): Tile[] {
  const { requests, store: calls } = sumsOfBuckets(report.buckets);
  const quantile = (share: number) => quantileText(calls.latency, share);
  const { isolates, openBreakers } = report;
  const breaker = openBreakers > 0 ? `open in ${formatCount(openBreakers)}` : "closed";
  const periodMs = now - Math.max(queryOf(range, now).from, totals?.since ?? 0);
  const cost = storeCost(calls, store);
  const soFar = totals && storeCost(totals.store, store);
  const over = `${formatCount(requests.over)} over the limit`;
  const ahead = { label: "Passed ahead of the store", value: requests.ahead, note: over };
  return [
    {
      label: "Requests",
      tone: "allowed",
      value: requests.requests,
      note: `${formatPercent(requests.unmatched, requests.requests)} without a rule`,
    },
    {
      label: "Limited",
      tone: "limited",
      value: requests.limited,
      note: html`${formatPercent(requests.limited, requests.requests)} of all requests · <a href="${denialsPath({})}">Denials</a>`,
    },
    {
      label: "Undecided",
      tone: "undecided",
      value: requests.undecidedPassed + requests.undecidedDenied,
      note: `${formatCount(requests.undecidedDenied)} got 503`,
    },
    {
      label: "Decided from memory",
      tone: "memory",
      value: formatPercent(requests.fromMemory, requests.allowed + requests.limited),
      note: `${formatShortCount(calls.calls)} calls to the store`,
    },
    {
      label: "Store latency p95",
      value: quantile(0.95),
      note: `p50 ${quantile(0.5)} · p99 ${quantile(0.99)}`,
    },
    {
      label: "Isolates",
      value: isolates,
      bad: openBreakers > 0,
      note: `Breaker ${breaker} · ${formatCount(calls.failures, "failure")}`,
    },
    ...(requests.ahead > 0 ? [ahead] : []),
    cost
      ? {
          label: "Store cost a month, estimated",
          value: formatDollars(monthlyDollars(cost.dollars, periodMs)),
          note: html`${formatShortCount(cost.count)} ${cost.unit}${
            soFar &&
            html` · ${formatDollars(soFar.dollars)} so far, since ${relativeTime(totals.since, now)}`
          }`,
        }
      : { label: "Store cost", value: "$0.00", note: "The store is in memory" },
  ];
}

const NEAREST = "Rules nearest to their limits";

/** The rules whose clients come nearest to their limits. */
function busiestRules(rows: readonly RuleRow[]): Html {
  // Rules with the same peak are ordered by their share, and then by their requests.
  const listed = (["requests", "share", "peak"] as const)
    .reduce<readonly RuleRow[]>(sortedRules, rows)
    .slice(0, LISTED);
  return html`<section class="card" id="rules" data-live>
<h2>${NEAREST} <a class="note" href="/_weir/rules">All ${formatCount(rows.length)}</a></h2>
${table({ caption: NEAREST, columns: Object.values(RULE_COLUMNS), rows: listed })}</section>`;
}

/** The maximum number of shadow rules in the table. The page of all rules lists all of them. */
const MAX_SHADOW_RULES = 20;

/** The denials that the rules in shadow mode would have made, beside the real denials. */
function shadowRules(rows: readonly RuleRow[]): Html | false {
  const shadow = rows.filter(({ rule, sums }) => rule.mode === "shadow" || sums.shadowLimited > 0);
  const column = (tone: Tone, label: string, count: (row: RuleRow) => number) => ({
    label: [sign(tone), " ", label],
    number: true,
    cell: (row: RuleRow) => part(count(row), row.sums.requests, tone),
  });
  const content = table({
    caption: "What each rule in shadow mode would have denied, beside what it has denied",
    showsCaption: true,
    columns: [
      RULE_COLUMNS.rule,
      RULE_COLUMNS.requests,
      column("shadow", "Would deny", ({ sums }) => sums.shadowLimited),
      column("limited", "Denied", ({ sums }) => sums.limited),
    ],
    rows: sortedRules(shadow, "shadow").slice(0, MAX_SHADOW_RULES),
  });
  return (
    shadow.length > 0 &&
    html`<section class="card" id="shadow" data-live><h2>Shadow beside live</h2>${content}</section>`
  );
}

/** The content of the overview before the first request. */
function noTraffic(url: string): Html {
  const { origin } = new URL(url);
  const command = `for i in $(seq 20); do curl -s -o /dev/null -w '%{http_code}\\n' ${origin}/; done`;
  return empty(
    "No traffic yet",
    html`<p>Send some requests, and look at this page again after 5 seconds:</p>
<pre tabindex="0"><code>${command}</code></pre>
<p>In a clone of Weir, <code>npm run dev -- --traffic</code> sends traffic to look at.</p>`,
  );
}

/** The maximum number of clients and of rules in the overview. Other pages list all of them. */
const LISTED = 8;

/** The page with the traffic of all rules. */
export async function overviewPage(c: DashboardContext) {
  const { operations, config } = c.var;
  const range = rangeOf(c.req.query("range"));
  const now = Date.now();
  const [report, totals, rules] = await Promise.all([
    attempt(() => operations.statistics(queryOf(range, now))),
    attempt(() => operations.totals()),
    attempt(() => operations.rules()),
  ]);
  const rows = rules.value?.map((rule) => ({ rule, sums: sumsOf(report.value, rule.name) }));
  const isEmpty = report.value?.buckets.length === 0 && !totals.value?.requests.requests;
  const traffic = report.value && {
    report: report.value,
    totals: totals.value,
    range,
    store: config.store,
    now,
  };
  const listed = report.value && {
    ...report.value,
    clients: report.value.clients.slice(0, LISTED),
  };
  return page(c, {
    title: "Overview",
    section: "/_weir/",
    refresh: `/_weir/?range=${range.id}`,
    content: html`${headingWithRanges("Overview", "/_weir/", range)}
${rules.fault !== undefined && unavailable("The rules", rules.fault)}
${report.fault !== undefined && unavailable("The traffic", report.fault)}
${report.value && breakerNotice(report.value)}
${traffic && (isEmpty ? noTraffic(c.req.url) : trafficOf(traffic))}
<div class="columns">${rows && busiestRules(rows)}${listed && !isEmpty && limitedClients(listed, now)}</div>
${rows && shadowRules(rows)}`,
  });
}

function trafficOf(traffic: Traffic): Html {
  const { report, range, now } = traffic;
  const charts = overviewCharts(queryOf(range, now), report.buckets, now);
  return html`${tiles(tilesOf(traffic), "tiles")}
${chart({ id: "requests", title: `Requests per ${range.resolution}`, data: charts.requests })}
<div class="columns">${chart({ id: "denials", title: `Denials per ${range.resolution}`, data: charts.denials })}
${chart({ id: "latency", title: "Latency of the store", data: charts.latency })}</div>
<p class="note updated" id="updated" data-live>Counted until ${relativeTime(now, now)}. Isolates upload their counts every 5 to 25
seconds.</p>`;
}

function breakerNotice({ openBreakers, isolates }: StatisticsReport): Html {
  const text = html`<b>The store fails.</b> ${formatCount(openBreakers)} of ${formatCount(isolates)} isolates do
not call it at the moment. Each rule's <code>onError</code> decides what happens to requests.`;
  return html`<div id="breaker" data-live>${openBreakers > 0 && notice("bad", text)}</div>`;
}

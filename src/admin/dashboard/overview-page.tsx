import type { Config } from "../../config/schema.ts";
import type { StatisticsReport, Totals } from "../../control/protocol.ts";
import { formatCount, formatDollars, formatPercent, formatShortCount } from "../format.ts";
import { quantileText, sumsOfBuckets } from "../traffic.ts";
import { Chart } from "./chart.ts";
import {
  Empty,
  Notice,
  Part,
  Sign,
  Table,
  Tile,
  type TileProps,
  Time,
  type Tone,
} from "./components.ts";
import { monthlyDollars, storeCost } from "./cost.ts";
import type { DashboardContext } from "./forms.tsx";
import { attempt, page, RangeSwitch, Unavailable } from "./layout.tsx";
import { LimitedClients } from "./overrides-page.tsx";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import { RULE_COLUMNS, type RuleRow, sortedRules, sumsOf } from "./rule-page.tsx";
import { overviewCharts } from "./traffic-charts.ts";

interface TilesProps {
  readonly report: StatisticsReport;
  /** The time of the report, in milliseconds. */
  readonly periodMs: number;
  /** Undefined if the totals cannot be read. */
  readonly totals: Totals | undefined;
  readonly store: Config["store"];
  readonly now: number;
}

/** The numbers at the top of the overview. */
function tilesOf({ report, periodMs, totals, store, now }: TilesProps): TileProps[] {
  const { requests, store: calls } = sumsOfBuckets(report.buckets);
  const quantile = (share: number) => quantileText(calls.latency, share);
  const { isolates, openBreakers } = report;
  const cost = storeCost(calls, store);
  const soFar = totals && storeCost(totals.store, store);
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
      note: `${formatPercent(requests.limited, requests.requests)} of all requests`,
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
      note: `${openBreakers > 0 ? `Breaker open in ${formatCount(openBreakers)}` : "Breaker closed"} · ${formatCount(calls.failures, "failure")}`,
    },
    cost
      ? {
          label: "Store cost a month, estimated",
          value: formatDollars(monthlyDollars(cost.dollars, periodMs)),
          note: (
            <>
              {formatShortCount(cost.count)} {cost.unit}
              {soFar && (
                <>
                  {" "}
                  · {formatDollars(soFar.dollars)} so far, since{" "}
                  <Time at={totals.since} now={now} />
                </>
              )}
            </>
          ),
        }
      : { label: "Store cost", value: "$0.00", note: "The store is in memory" },
  ];
}

interface BusiestProps {
  readonly rows: readonly RuleRow[];
  /** How many rules to list. */
  readonly count: number;
}

const NEAREST = "Rules nearest to their limits";

/** The rules that run nearest to their limits. */
function BusiestRules({ rows, count }: BusiestProps) {
  // Rules with the same peak are in the order of their share, and then of their requests.
  const listed = (["requests", "share", "peak"] as const)
    .reduce<readonly RuleRow[]>(sortedRules, rows)
    .slice(0, count);
  return (
    <section class="card" id="rules" data-live>
      <h2>
        {NEAREST}{" "}
        <a class="more" href="/_weir/rules">
          All {formatCount(rows.length)}
        </a>
      </h2>
      <Table caption={NEAREST} columns={Object.values(RULE_COLUMNS)} rows={listed} />
    </section>
  );
}

/** How many rules the table of shadow rules lists. The page of all rules has the others. */
const MAX_SHADOW_RULES = 20;

/** What the rules in shadow mode would have denied, beside what is denied. */
function ShadowRules({ rows }: { rows: readonly RuleRow[] }) {
  const shadow = rows.filter(({ rule, sums }) => rule.mode === "shadow" || sums.shadowLimited > 0);
  if (shadow.length === 0) return null;
  const column = (tone: Tone, label: string, count: (row: RuleRow) => number) => ({
    label: [Sign({ tone }), " ", label],
    number: true,
    cell: (row: RuleRow) => <Part count={count(row)} of={row.sums.requests} tone={tone} />,
  });
  return (
    <section class="card" id="shadow" data-live>
      <h2>Shadow beside live</h2>
      <Table
        caption="What each rule in shadow mode would have denied, beside what it has denied"
        showsCaption
        columns={[
          RULE_COLUMNS.rule,
          RULE_COLUMNS.requests,
          column("shadow", "Would deny", ({ sums }) => sums.shadowLimited),
          column("limited", "Denied", ({ sums }) => sums.limited),
        ]}
        rows={sortedRules(shadow, "shadow").slice(0, MAX_SHADOW_RULES)}
      />
    </section>
  );
}

/** What the overview shows before the first request. */
function NoTraffic({ url }: { url: string }) {
  const { origin } = new URL(url);
  return (
    <Empty title="No traffic yet">
      <p>Send some requests, and look at this page again after 5 seconds:</p>
      <pre tabindex={0}>
        <code>{`for i in $(seq 20); do curl -s -o /dev/null -w '%{http_code}\\n' ${origin}/; done`}</code>
      </pre>
      <p>
        In a clone of Weir, <code>npm run dev -- --traffic</code> sends traffic to look at.
      </p>
    </Empty>
  );
}

/** How many clients and rules the overview lists. Other pages list all. */
const LISTED = 8;

/** The page with the traffic of all rules. */
export async function overviewPage(c: DashboardContext) {
  const { operations, config } = c.var;
  const range = rangeOf(c.req.query("range"));
  const now = Date.now();
  const query = queryOf(range, now);
  const [report, totals, rules] = await Promise.all([
    attempt(() => operations.statistics(query)),
    attempt(() => operations.totals()),
    attempt(() => operations.rules()),
  ]);
  const rows = rules.value?.map((rule) => ({ rule, sums: sumsOf(report.value, rule.name) }));
  const isEmpty = report.value?.buckets.length === 0 && !totals.value?.requests.requests;
  return page(c, {
    title: "Overview",
    section: "/_weir/",
    refresh: `/_weir/?range=${range.id}`,
    children: (
      <>
        <div class="heading">
          <h1>Overview</h1>
          <RangeSwitch path="/_weir/" range={range} />
        </div>
        {rules.fault !== undefined && <Unavailable what="The rules" fault={rules.fault} />}
        {report.value ? (
          <>
            <BreakerNotice report={report.value} />
            {isEmpty ? (
              <NoTraffic url={c.req.url} />
            ) : (
              <>
                <ul class="tiles" id="tiles" data-live>
                  {tilesOf({
                    report: report.value,
                    periodMs: now - Math.max(query.from, totals.value?.since ?? 0),
                    totals: totals.value,
                    store: config.store,
                    now,
                  }).map(Tile)}
                </ul>
                <OverviewCharts report={report.value} range={range} now={now} />
                <p class="updated" id="updated" data-live>
                  Counted until <Time at={now} now={now} />. Isolates upload their counts every 5
                  seconds.
                </p>
              </>
            )}
          </>
        ) : (
          <Unavailable what="The traffic" fault={report.fault} />
        )}
        <div class="columns">
          {rows && <BusiestRules rows={rows} count={LISTED} />}
          {report.value && !isEmpty && (
            <LimitedClients
              clients={report.value.clients.slice(0, LISTED)}
              from={report.value.clientsFrom}
              now={now}
            />
          )}
        </div>
        {rows && <ShadowRules rows={rows} />}
      </>
    ),
  });
}

interface ChartsProps {
  readonly report: StatisticsReport;
  readonly range: Range;
  readonly now: number;
}

function OverviewCharts({ report, range, now }: ChartsProps) {
  const charts = overviewCharts(queryOf(range, now), report.buckets, now);
  const { bucketsPerRow, resolution } = range;
  return (
    <>
      <Chart
        id="requests"
        title={`Requests per ${resolution}`}
        data={charts.requests}
        bucketsPerRow={bucketsPerRow}
      />
      <div class="columns">
        <Chart
          id="denials"
          title={`Denials per ${resolution}`}
          data={charts.denials}
          bucketsPerRow={bucketsPerRow}
        />
        <Chart
          id="latency"
          title="Latency of the store"
          data={charts.latency}
          bucketsPerRow={bucketsPerRow}
        />
      </div>
    </>
  );
}

function BreakerNotice({ report: { openBreakers, isolates } }: { report: StatisticsReport }) {
  return (
    <div id="breaker" data-live>
      {openBreakers > 0 && (
        <Notice kind="bad">
          <b>The store fails.</b> {formatCount(openBreakers)} of {formatCount(isolates)} isolates do
          not call it at the moment. Each rule's <code>onError</code> decides what happens to
          requests.
        </Notice>
      )}
    </div>
  );
}

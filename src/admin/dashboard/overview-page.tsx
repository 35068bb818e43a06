import type { Child } from "hono/jsx";
import type { Config } from "../../config/schema.ts";
import type { StatisticsReport, Totals } from "../../control/protocol.ts";
import {
  addRequests,
  addStoreSums,
  noRequests,
  noStoreSums,
  type StoreSums,
} from "../../statistics/sums.ts";
import { formatCount, formatDollars, formatPercent, formatShortCount } from "../format.ts";
import { Chart } from "./chart.tsx";
import { overviewCharts, type Tone } from "./chart-drawing.ts";
import {
  Bar,
  ModeBadge,
  NoTraffic,
  Notice,
  RangeSwitch,
  RuleLink,
  Sign,
  Table,
  Time,
  Unavailable,
} from "./components.tsx";
import type { DashboardContext } from "./context.ts";
import { monthlyDollars, storeCost } from "./cost.ts";
import { attempt } from "./forms.tsx";
import { quantileText } from "./histogram.ts";
import { page } from "./layout.tsx";
import { LimitedClients } from "./overrides.tsx";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import { exceededCount, peakText, type RuleRow, sortedRules, sumsOf } from "./rule-page.tsx";

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
function Tiles({ report, periodMs, totals, store, now }: TilesProps) {
  const requests = noRequests();
  const calls = noStoreSums();
  for (const bucket of report.buckets) {
    addRequests(requests, bucket.requests);
    addStoreSums(calls, bucket.store);
  }
  const undecided = requests.undecidedPassed + requests.undecidedDenied;
  const limited = formatPercent(requests.limited, requests.requests);
  const unmatched = formatPercent(requests.unmatched, requests.requests);
  const quantile = (share: number) => quantileText(calls.latency, share);
  return (
    <ul class="tiles" id="tiles" data-live>
      <Tile label="Requests" tone="allowed" count={requests.requests}>
        {unmatched} without a rule
      </Tile>
      <Tile label="Limited" tone="limited" count={requests.limited}>
        {limited} of all requests
      </Tile>
      <Tile label="Undecided" tone="undecided" count={undecided}>
        {formatCount(requests.undecidedDenied)} got 503
      </Tile>
      <Tile
        label="Decided from memory"
        tone="memory"
        value={formatPercent(requests.fromMemory, requests.allowed + requests.limited)}
      >
        {formatShortCount(calls.calls)} calls to the store
      </Tile>
      <Tile label="Store latency p95" value={quantile(0.95)}>
        p50 {quantile(0.5)} · p99 {quantile(0.99)}
      </Tile>
      <IsolatesTile report={report} failures={calls.failures} />
      <CostTile calls={calls} periodMs={periodMs} totals={totals} store={store} now={now} />
    </ul>
  );
}

interface TileProps {
  readonly label: string;
  readonly tone?: Tone;
  /** A number, which the tile shortens. */
  readonly count?: number;
  readonly value?: string;
  readonly bad?: boolean;
  readonly children?: Child;
}

function Tile({ label, tone, count = 0, value, bad, children }: TileProps) {
  const exact = value === undefined ? formatCount(count) : undefined;
  return (
    <li class={bad ? "tile card bad" : "tile card"}>
      <span class="tile-label">
        {tone && <Sign tone={tone} />}
        {label}
      </span>
      <span class="tile-value" title={exact}>
        {value ?? formatShortCount(count)}
      </span>
      <span class="tile-note">{children}</span>
    </li>
  );
}

function IsolatesTile({ report, failures }: { report: StatisticsReport; failures: number }) {
  const { isolates, openBreakers } = report;
  return (
    <Tile label="Isolates" count={isolates} bad={openBreakers > 0}>
      {openBreakers > 0 ? `Breaker open in ${formatCount(openBreakers)}` : "Breaker closed"} ·{" "}
      {formatCount(failures, "failure")}
    </Tile>
  );
}

interface CostProps extends Omit<TilesProps, "report"> {
  readonly calls: StoreSums;
}

function CostTile({ calls, periodMs, totals, store, now }: CostProps) {
  const cost = storeCost(calls, store);
  if (!cost) {
    return (
      <Tile label="Store cost" value="$0.00">
        The store is in memory
      </Tile>
    );
  }
  const soFar = totals && storeCost(totals.store, store);
  return (
    <Tile
      label="Store cost a month, estimated"
      value={formatDollars(monthlyDollars(cost.dollars, periodMs))}
    >
      {formatShortCount(cost.count)} {cost.unit}
      {soFar && (
        <>
          {" "}
          · {formatDollars(soFar.dollars)} so far, since <Time at={totals.since} now={now} />
        </>
      )}
    </Tile>
  );
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
      <Table
        caption={NEAREST}
        columns={[
          { label: "Rule" },
          { label: "Requests", number: true },
          { label: "Peak use", number: true },
          { label: "Over the limit", number: true },
        ]}
      >
        {listed.map(({ rule, sums }) => (
          <tr>
            <th scope="row">
              <RuleLink rule={rule.name} /> <ModeBadge mode={rule.mode} />
            </th>
            <td class="number">{formatCount(sums.requests)}</td>
            <td class="number">
              {peakText(sums)}
              <Bar share={sums.peak} tone={rule.mode === "shadow" ? "shadow" : "limited"} />
            </td>
            <td class="number">{formatPercent(exceededCount(sums), sums.requests)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** How many rules the table of shadow rules lists. The page of all rules has the others. */
const MAX_SHADOW_RULES = 20;

/** What the rules in shadow mode would have denied, beside what is denied. */
function ShadowRules({ rows }: { rows: readonly RuleRow[] }) {
  const shadow = rows.filter(({ rule, sums }) => rule.mode === "shadow" || sums.shadowLimited > 0);
  if (shadow.length === 0) return null;
  const heading = (tone: Tone, text: string) => (
    <>
      <Sign tone={tone} /> {text}
    </>
  );
  return (
    <section class="card" id="shadow" data-live>
      <h2>Shadow beside live</h2>
      <Table
        caption="What each rule in shadow mode would have denied, beside what it has denied"
        showsCaption
        columns={[
          { label: "Rule" },
          { label: "Requests", number: true },
          { label: heading("shadow", "Would deny"), number: true },
          { label: heading("limited", "Denied"), number: true },
        ]}
      >
        {sortedRules(shadow, "shadow")
          .slice(0, MAX_SHADOW_RULES)
          .map(({ rule, sums }) => (
            <tr>
              <th scope="row">
                <RuleLink rule={rule.name} /> <ModeBadge mode={rule.mode} />
              </th>
              <td class="number">{formatCount(sums.requests)}</td>
              <Part count={sums.shadowLimited} of={sums.requests} tone="shadow" />
              <Part count={sums.limited} of={sums.requests} tone="limited" />
            </tr>
          ))}
      </Table>
    </section>
  );
}

function Part({ count, of, tone }: { count: number; of: number; tone: Tone }) {
  return (
    <td class="number">
      {formatCount(count)} <small>{formatPercent(count, of)}</small>
      <Bar share={count / Math.max(1, of)} tone={tone} />
    </td>
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
                <Tiles
                  report={report.value}
                  periodMs={now - Math.max(query.from, totals.value?.since ?? 0)}
                  totals={totals.value}
                  store={config.store}
                  now={now}
                />
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

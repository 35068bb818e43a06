import type { StatisticsReport } from "../../control/protocol.ts";
import { attempt } from "./attempt.ts";
import { Chart } from "./chart.tsx";
import type { DashboardContext } from "./context.ts";
import { countText } from "./format.ts";
import { page } from "./layout.tsx";
import { LimitedClients } from "./limited-clients.tsx";
import { NoTraffic } from "./no-traffic.tsx";
import { Notice, Unavailable } from "./notice.tsx";
import { BusiestRules, ShadowRules } from "./overview-rules.tsx";
import { RangeSwitch } from "./range-switch.tsx";
import { queryOf, type Range, rangeOf } from "./ranges.ts";
import { sumsOf } from "./rule-sums.ts";
import { overviewCharts } from "./series.ts";
import { Tiles } from "./tiles.tsx";
import { Time } from "./time.tsx";

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
                  Counted until <Time at={now} now={now} />. Isolates hand over their counts every 5
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
          <b>The store fails.</b> {countText(openBreakers)} of {countText(isolates)} isolates do not
          call it at the moment. Each rule's <code>onError</code> decides what happens to requests.
        </Notice>
      )}
    </div>
  );
}

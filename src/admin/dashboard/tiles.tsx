import type { Child } from "hono/jsx";
import type { Config } from "../../config/schema.ts";
import type { StatisticsReport, Totals } from "../../control/protocol.ts";
import { addRequests, addStoreSums, noRequests, noStoreSums } from "../../statistics/add-sums.ts";
import type { StoreSums } from "../../statistics/sums.ts";
import { Sign } from "./bar.tsx";
import { monthlyDollars, storeCost } from "./cost.ts";
import { counted, countText, dollarsText, percentText, shortCount } from "./format.ts";
import { quantileText } from "./histogram.ts";
import { Time } from "./time.tsx";
import type { Tone } from "./tone.ts";

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
export function Tiles({ report, periodMs, totals, store, now }: TilesProps) {
  const requests = noRequests();
  const calls = noStoreSums();
  for (const bucket of report.buckets) {
    addRequests(requests, bucket.requests);
    addStoreSums(calls, bucket.store);
  }
  const undecided = requests.undecidedPassed + requests.undecidedDenied;
  const limited = percentText(requests.limited, requests.requests);
  const unmatched = percentText(requests.unmatched, requests.requests);
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
        {countText(requests.undecidedDenied)} got 503
      </Tile>
      <Tile
        label="Decided from memory"
        tone="memory"
        value={percentText(requests.fromMemory, requests.allowed + requests.limited)}
      >
        {shortCount(calls.calls)} calls to the store
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
  const exact = value === undefined ? countText(count) : undefined;
  return (
    <li class={bad ? "tile card bad" : "tile card"}>
      <span class="tile-label">
        {tone && <Sign tone={tone} />}
        {label}
      </span>
      <span class="tile-value" title={exact}>
        {value ?? shortCount(count)}
      </span>
      <span class="tile-note">{children}</span>
    </li>
  );
}

function IsolatesTile({ report, failures }: { report: StatisticsReport; failures: number }) {
  const { isolates, openBreakers } = report;
  return (
    <Tile label="Isolates" count={isolates} bad={openBreakers > 0}>
      {openBreakers > 0 ? `Breaker open in ${countText(openBreakers)}` : "Breaker closed"} ·{" "}
      {counted(failures, "failure")}
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
      value={dollarsText(monthlyDollars(cost.dollars, periodMs))}
    >
      {shortCount(cost.count)} {cost.unit}
      {soFar && (
        <>
          {" "}
          · {dollarsText(soFar.dollars)} so far, since <Time at={totals.since} now={now} />
        </>
      )}
    </Tile>
  );
}

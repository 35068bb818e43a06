import { formatCount, formatDuration, formatPercent, formatTime } from "../../src/admin/format.ts";
import { quantileText, sumsOfBuckets } from "../../src/admin/traffic.ts";
import { MAX_WINDOW_SECONDS, parseDuration } from "../../src/config/duration.ts";
import type { Resolution, StatisticsReport } from "../../src/control/protocol.ts";
import type { RuleSums } from "../../src/statistics/sums.ts";
import { barChart, type Cell, styled, table } from "../print/text.ts";
import { type ConnectionOptions, connect, type Printed, wrongOptions } from "./connection.ts";
import { findRule } from "./selector.ts";

interface TimeOptions extends ConnectionOptions {
  readonly rule?: string;
  readonly last: string;
}

export interface StatisticsOptions extends TimeOptions {
  readonly by?: Resolution;
}

export interface TopOptions extends TimeOptions {
  readonly count: number;
}

const DAY_MS = 86_400_000;
/** The maximum number of bars in the chart of the requests. */
const CHART_WIDTH = 60;

/** Shows the sums of all rules. With `--by`, shows the sums of each minute, hour or day. */
export async function statistics(options: StatisticsOptions): Promise<Printed> {
  const report = await fetchReport(options, options.by);
  const parts = [summary(report, options.last), rulesTable(report)];
  if (options.by !== undefined) parts.push(bucketTable(report));
  return { json: report, text: parts.filter(Boolean).join("\n\n") };
}

const AGE =
  "The counts are usually at most 25 seconds old: each isolate uploads its own every 5 to 25 seconds.";

/** Shows the clients that were limited most, and how old their counts are. */
export async function top(options: TopOptions): Promise<Printed> {
  const report = await fetchReport(options, undefined);
  const clients = report.clients.slice(0, options.count);
  const { clientsFrom } = report;
  const json = { clients, ...(clientsFrom !== undefined && { clientsFrom }) };
  // Clients are counted by hour, so the report may begin before the requested time.
  const since =
    clientsFrom === undefined ? `in the last ${options.last}` : `since ${formatTime(clientsFrom)}`;
  if (clients.length === 0) {
    return { json, text: `No client was limited ${since}. ${AGE}` };
  }
  const now = Date.now();
  const rows = clients.map(({ rule, client, count: times, error, lastAt, shadow }): Cell[] => [
    rule,
    client,
    { text: times, style: shadow ? "yellow" : "red" },
    error > 0 ? `± ${formatCount(error)}` : "",
    `${formatDuration(now - lastAt)} ago`,
    shadow ? "shadow: not denied" : "",
  ]);
  const text = table(["RULE", "CLIENT", "LIMITED", "ERROR", "LAST", ""], rows);
  return {
    json,
    text: `${text}\n\nCounted ${since}. ${AGE} ${styled("dim", "weir peek RULE --client CLIENT shows one of them.")}`,
  };
}

async function fetchReport(
  { rule, last, ...options }: TimeOptions,
  by: Resolution | undefined,
): Promise<StatisticsReport> {
  const seconds = parseDuration(last);
  if (seconds === undefined) {
    throw wrongOptions(
      `--last is "${last}". Allowed: a whole number and a unit, such as 15m, 1h, 7d or 52w, at most ${MAX_WINDOW_SECONDS / 86_400} days.`,
    );
  }
  const until = Date.now();
  const query = new URLSearchParams({
    resolution: by ?? coarsest(seconds * 1000),
    from: `${until - seconds * 1000}`,
    until: `${until}`,
    ...(rule !== undefined && { rule }),
  });
  const api = await connect(options);
  if (rule !== undefined) await findRule(api, rule);
  return await api.call<StatisticsReport>("GET", `statistics?${query}`, "buckets");
}

/** The Worker keeps sums of minutes for a day, and sums of hours for a month. */
function coarsest(lastMs: number): Resolution {
  if (lastMs <= DAY_MS) return "minute";
  return lastMs <= 30 * DAY_MS ? "hour" : "day";
}

function summary({ buckets, isolates, openBreakers }: StatisticsReport, last: string): string {
  const { requests, store } = sumsOfBuckets(buckets);
  const undecided = requests.undecidedPassed + requests.undecidedDenied;
  const ahead =
    requests.ahead > 0
      ? `, ${formatCount(requests.ahead)} passed ahead of the store (${formatCount(requests.over)} over the limit)`
      : "";
  const quantiles = [0.5, 0.99].map((share) => quantileText(store.latency, share));
  const latency = store.calls === 0 ? "" : `, half within ${quantiles.join(", 99% within ")}`;
  const lines = [
    `Last ${last}: ${formatCount(requests.requests)} requests, ${styled("red", `${formatCount(requests.limited)} limited`)} (${formatPercent(requests.limited, requests.requests)}), ${formatCount(undecided)} undecided${ahead}`,
    `Store: ${formatCount(store.calls)} calls, ${formatCount(store.failures)} failed${latency}; ${formatPercent(requests.fromMemory, requests.requests)} of the requests decided from memory`,
    `Isolates: ${formatCount(isolates)}${openBreakers > 0 ? styled("red", `, ${formatCount(openBreakers)} with an open breaker`) : ""}`,
  ];
  if (buckets.length > 1) {
    const counts = buckets.map((each) => each.requests.requests);
    lines.push(`Requests: ${barChart(counts, CHART_WIDTH)}`);
  }
  return lines.join("\n");
}

function rulesTable({ rules }: StatisticsReport): string {
  const sorted = Object.entries(rules).sort(([, one], [, other]) => other.requests - one.requests);
  if (sorted.length === 0) return "No rule applied to a request.";
  const text = sumsTable("RULE", sorted);
  const meanings = [
    sorted.some(([, { shadowLimited }]) => shadowLimited > 0) && SHADOW_MEANING,
    sorted.some(([, { ahead }]) => ahead > 0) && AHEAD_MEANING,
  ].filter((meaning) => meaning !== false);
  return [text, ...meanings.map((meaning) => styled("dim", meaning))].join("\n\n");
}

const SHADOW_MEANING =
  "SHADOW: requests that a rule in shadow mode would have denied. The rule let them pass.";
const AHEAD_MEANING =
  "AHEAD: requests that passed before the store had decided (async). OVER: those that it denied later.";

const SUM_HEADINGS = [
  "REQUESTS",
  "ALLOWED",
  "LIMITED",
  "MARKED",
  "UNDECIDED",
  "SHADOW",
  "PEAK USE",
];

/** Returns a table of the sums of rules. The columns AHEAD and OVER are omitted if all of their numbers are 0. */
function sumsTable(heading: string, sums: readonly (readonly [name: string, RuleSums])[]): string {
  const hasAhead = sums.some(([, { ahead }]) => ahead > 0);
  return table(
    [heading, ...SUM_HEADINGS, ...(hasAhead ? ["AHEAD", "OVER"] : [])],
    sums.map(([name, each]) => [
      name,
      ...sumCells(each),
      ...(hasAhead ? [each.ahead, coloured(each.over, "red")] : []),
    ]),
  );
}

function sumCells({
  requests,
  allowed,
  limited,
  marked,
  undecided,
  shadowLimited,
  // A Worker with an older version does not report the peak.
  peak = 0,
}: RuleSums): Cell[] {
  return [
    requests,
    allowed,
    coloured(limited, "red"),
    marked,
    coloured(undecided, "magenta"),
    coloured(shadowLimited, "yellow"),
    peak > 0 ? formatPercent(peak, 1) : "–",
  ];
}

function bucketTable({ buckets, ruleBuckets }: StatisticsReport): string {
  if (ruleBuckets) {
    const rows = ruleBuckets.map(
      (sums, index) => [formatTime(buckets[index]?.at ?? 0), sums] as const,
    );
    return sumsTable("TIME", rows);
  }
  const rows = buckets.map(({ at, requests }): Cell[] => [
    formatTime(at),
    requests.requests,
    requests.allowed,
    coloured(requests.limited, "red"),
    requests.undecidedPassed + requests.undecidedDenied,
    requests.unmatched,
  ]);
  return table(["TIME", "REQUESTS", "ALLOWED", "LIMITED", "UNDECIDED", "NO RULE"], rows);
}

function coloured(count: number, style: "red" | "yellow" | "magenta"): Cell {
  return count > 0 ? { text: count, style } : 0;
}

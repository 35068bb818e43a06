import { formatCount, formatDuration, formatPercent, formatTime } from "../../src/admin/format.ts";
import { MAX_WINDOW_SECONDS, parseDuration } from "../../src/config/window.ts";
import type { Bucket, Resolution, StatisticsReport } from "../../src/control/protocol.ts";
import { LATENCY_BOUNDS_MS, type RuleSums, type StoreSums } from "../../src/statistics/sums.ts";
import { type Cell, styled, table } from "../print/text.ts";
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

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Shows the sums of all rules, and with `--by` those of each minute, hour or day. */
export async function statistics(options: StatisticsOptions): Promise<Printed> {
  const report = await fetchReport(options, options.by);
  const parts = [summary(report, options.last), rulesTable(report)];
  if (options.by !== undefined) parts.push(bucketTable(report));
  return { json: report, text: parts.filter(Boolean).join("\n\n") };
}

/** Shows the clients most limited. */
export async function top(options: TopOptions): Promise<Printed> {
  const report = await fetchReport(options, undefined);
  const clients = report.clients.slice(0, options.count);
  const { clientsFrom } = report;
  const json = { clients, ...(clientsFrom !== undefined && { clientsFrom }) };
  // Clients are counted by hour, so a short time begins earlier than asked for.
  const since = clientsFrom === undefined ? `in the last ${options.last}` : sinceText(clientsFrom);
  if (clients.length === 0) {
    return { json, text: `No client was limited ${since}.` };
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
    text: `${text}\n\nCounted ${since}. ${styled("dim", "weir peek RULE --client CLIENT shows one of them.")}`,
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

function sinceText(at: number): string {
  return `since ${formatTime(at)}`;
}

/** Minutes are kept for a day, and hours for a month. */
function coarsest(lastMs: number): Resolution {
  if (lastMs <= DAY_MS) return "minute";
  return lastMs <= 30 * DAY_MS ? "hour" : "day";
}

function summary({ buckets, isolates, openBreakers }: StatisticsReport, last: string): string {
  const sum = (pick: (bucket: Bucket) => number) =>
    buckets.reduce((all, each) => all + pick(each), 0);
  const requests = sum((each) => each.requests.requests);
  const limited = sum((each) => each.requests.limited);
  const undecided = sum((each) => each.requests.undecidedPassed + each.requests.undecidedDenied);
  const fromMemory = sum((each) => each.requests.fromMemory);
  const calls = sum((each) => each.store.calls);
  const failures = sum((each) => each.store.failures);
  const lines = [
    `Last ${last}: ${formatCount(requests)} requests, ${styled("red", `${formatCount(limited)} limited`)} (${formatPercent(limited, requests)}), ${formatCount(undecided)} undecided`,
    `Store: ${formatCount(calls)} calls, ${formatCount(failures)} failed${latency(buckets.map(({ store }) => store))}; ${formatPercent(fromMemory, requests)} of the requests decided from memory`,
    `Isolates: ${isolates}${openBreakers > 0 ? styled("red", `, ${openBreakers} with an open breaker`) : ""}`,
  ];
  if (buckets.length > 1)
    lines.push(`Requests: ${sparkline(buckets.map((each) => each.requests.requests))}`);
  return lines.join("\n");
}

/** Returns upper bounds of the median and the slowest calls, from the histogram. */
function latency(stores: readonly StoreSums[]): string {
  const calls = stores.reduce(
    (all, each) => all + each.latency.reduce((sum, one) => sum + one, 0),
    0,
  );
  if (calls === 0) return "";
  const quantile = (part: number) => {
    let [index, seen] = [0, 0];
    for (; index < LATENCY_BOUNDS_MS.length; index++) {
      seen += stores.reduce((all, each) => all + (each.latency[index] ?? 0), 0);
      if (seen >= calls * part) return `≤ ${LATENCY_BOUNDS_MS[index]} ms`;
    }
    return `> ${LATENCY_BOUNDS_MS.at(-1)} ms`;
  };
  return `, half ${quantile(0.5)}, 99% ${quantile(0.99)}`;
}

function rulesTable({ rules }: StatisticsReport): string {
  const rows = Object.entries(rules)
    .sort(([, one], [, other]) => other.requests - one.requests)
    .map(([name, sums]) => [name, ...sumCells(sums)]);
  return rows.length === 0
    ? "No rule applied to a request."
    : table(["RULE", ...SUM_HEADINGS], rows);
}

const SUM_HEADINGS = [
  "REQUESTS",
  "ALLOWED",
  "LIMITED",
  "MARKED",
  "UNDECIDED",
  "SHADOW",
  "PEAK USE",
];

function sumCells({
  requests,
  allowed,
  limited,
  marked,
  undecided,
  shadowLimited,
  // The Worker may have an older version, which does not report it.
  peak = 0,
}: RuleSums): Cell[] {
  return [
    requests,
    allowed,
    limited > 0 ? { text: limited, style: "red" } : 0,
    marked,
    undecided > 0 ? { text: undecided, style: "magenta" } : 0,
    shadowLimited > 0 ? { text: shadowLimited, style: "yellow" } : 0,
    peak > 0 ? formatPercent(peak, 1) : "–",
  ];
}

function bucketTable({ buckets, ruleBuckets }: StatisticsReport): string {
  if (ruleBuckets) {
    const rows = ruleBuckets.map((sums, index) => [
      formatTime(buckets[index]?.at ?? 0),
      ...sumCells(sums),
    ]);
    return table(["TIME", ...SUM_HEADINGS], rows);
  }
  const rows = buckets.map(({ at, requests }): Cell[] => [
    formatTime(at),
    requests.requests,
    requests.allowed,
    requests.limited > 0 ? { text: requests.limited, style: "red" } : 0,
    requests.undecidedPassed + requests.undecidedDenied,
    requests.unmatched,
  ]);
  return table(["TIME", "REQUESTS", "ALLOWED", "LIMITED", "UNDECIDED", "NO RULE"], rows);
}

const BLOCKS = "▁▂▃▄▅▆▇█";

/** Draws numbers as a line of blocks, at most 60. */
function sparkline(values: readonly number[]): string {
  const size = Math.ceil(values.length / 60);
  const groups = Array.from({ length: Math.ceil(values.length / size) }, (_, group) =>
    values.slice(group * size, (group + 1) * size).reduce((all, each) => all + each, 0),
  );
  const most = Math.max(1, ...groups);
  return groups.map((each) => BLOCKS[Math.round((each / most) * (BLOCKS.length - 1))]).join("");
}

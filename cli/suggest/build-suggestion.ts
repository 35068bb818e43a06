import { formatWindow } from "../../src/config/windows.ts";
import type { LogSummary } from "../logs/log-summary.ts";
import type { Timeline } from "../replay/report.ts";
import { claimedCrawler } from "./crawler-claims.ts";
import {
  type BusiestWindows,
  histogramOf,
  limitCandidates,
  proposedLimit,
} from "./limit-candidates.ts";
import type { LoudEntry } from "./loud-clients.ts";
import type { RequestedRule } from "./requested-rule.ts";
import type { SuggestTally } from "./suggest-tally.ts";
import type { LoudClient, Suggestion, WindowSuggestion } from "./suggestion.ts";

const LOUDEST = 10;
const MOST_FREQUENT = 3;

/** Returns the report about counted requests, without the rule and without notes. */
export function buildSuggestion(
  { name, match, key, windows }: RequestedRule,
  counts: SuggestTally,
  log: LogSummary,
): Suggestion {
  counts.finish();
  const { clients, loud } = counts;
  return {
    version: 1,
    log,
    ...{ name, match, key },
    notes: [],
    requests: counts.requests,
    clients: clients.size * clients.weight,
    isEstimate: clients.level > 0,
    windows: windows.map((window, index) => windowSuggestion(formatWindow(window), index, counts)),
    bots: counts.bots.list(),
    loudest: loud.top(LOUDEST).map((entry) => loudClient(entry, counts)),
    timeline: timelineOf(counts),
    rule: undefined,
  };
}

function windowSuggestion(
  window: string,
  index: number,
  { windows, clients }: SuggestTally,
): WindowSuggestion {
  const { counts } = windows[index] as (typeof windows)[number];
  const busiest = busiestWindows(index, clients);
  return {
    window,
    clientWindows: counts.total,
    median: counts.quantile(0.5),
    p95: counts.quantile(0.95),
    p99: counts.quantile(0.99),
    max: counts.max,
    limits: limitCandidates(busiest, counts),
    proposed: proposedLimit(busiest, counts),
    histogram: histogramOf(busiest),
  };
}

function busiestWindows(
  index: number,
  { size, width, counts, weight }: SuggestTally["clients"],
): BusiestWindows {
  const sorted = new Uint32Array(size);
  for (let entry = 0; entry < size; entry++) {
    sorted[entry] = counts[entry * width + index] as number;
  }
  return { sorted: sorted.sort(), weight };
}

function loudClient(entry: LoudEntry, counts: SuggestTally): LoudClient {
  const userAgents = entry.userAgents.top(MOST_FREQUENT);
  const crawler = userAgents.map(({ text }) => claimedCrawler(text)).find(Boolean);
  return {
    client: entry.client,
    ...totalsOf(entry, counts),
    busiest: entry.busiest,
    busiestStart: new Date(entry.busiestStart).toISOString(),
    userAgents,
    paths: entry.paths.top(MOST_FREQUENT),
    ...(crawler !== undefined && { claimsToBe: crawler }),
  };
}

/** The totals of a client outside the sample are those since it was among the loudest. */
function totalsOf(
  { high, low, requests, succeeded }: LoudEntry,
  { clients }: SuggestTally,
): Pick<LoudClient, "requests" | "succeeded"> {
  const entry = clients.entryOf(high, low);
  if (entry < 0) return { requests, succeeded };
  const end = (entry + 1) * clients.width;
  return {
    requests: clients.counts[end - 2] as number,
    succeeded: clients.counts[end - 1] as number,
  };
}

function timelineOf({ axis, series }: SuggestTally): Timeline {
  const allowed = [...series.subarray(0, axis.steps)];
  return {
    start: axis.startMs === undefined ? undefined : new Date(axis.startMs).toISOString(),
    stepSeconds: axis.stepSeconds,
    allowed,
    denied: allowed.map(() => 0),
  };
}

import { formatWindow } from "../../src/config/window.ts";
import { type LogRequest, ownText } from "../logs/log-request.ts";
import type { LogSummary } from "../logs/progress.ts";
import type { Timeline } from "../replay/report.ts";
import { hasSucceeded } from "../tally/client-ranking.ts";
import { compare, FrequentTexts } from "../tally/texts.ts";
import { type Series, TimeAxis } from "../tally/time-axis.ts";
import {
  botCategoryOf,
  claimedCrawler,
  type RequestClient,
  VerifiedBots,
} from "./client-reader.ts";
import { type Boundaries, ClientCounts, type NumberCounts, WindowCounter } from "./counts.ts";
import type { RequestedRule } from "./requested-rule.ts";
import type {
  HistogramBar,
  LoudClient,
  ProposedLimit,
  SuggestedLimit,
  Suggestion,
  WindowSuggestion,
} from "./suggestion.ts";

/** The first digits of numbers that are easy to remember, in ascending order. */
const DIGITS = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100];

/** Rounds a limit up to a number that is easy to remember. A limit of up to 10 stays as it is. */
export function kindLimit(limit: number): number {
  if (limit <= 10) return limit;
  let factor = 1;
  while (factor * 100 < limit) factor *= 10;
  const digits = DIGITS.find((each) => each * factor >= limit) ?? 100;
  return digits * factor;
}

/** The shares of clients that the suggested limits touch, each as a divisor of their number. */
const DIVISORS = [100, 1000, 10_000];

/**
 * The share of the proposed limit: 0.1 % of the clients. Of fewer than 1,000 clients, this is less than one client,
 * so the limit would be that of the busiest client, who may be an attacker. Then it is 1 %.
 */
const PROPOSED_DIVISOR = 1000;
const PROPOSED_DIVISOR_OF_FEW = 100;

/** The busiest windows of all clients, or of a uniform sample of them. */
interface BusiestWindows {
  /** The number of requests in the busiest window of each client, in ascending order. */
  readonly sorted: Uint32Array;
  /** The number of clients for which each element stands. */
  readonly weight: number;
}

/**
 * Returns the lowest limits that deny at most 1 %, 0.1 % and 0.01 % of clients, each in at least one window;
 * nothing without clients.
 *
 * A window with more requests than the limit has as many denials as it has requests above the limit, because
 * denied requests do not count.
 *
 * @param counts the requests of all pairs of a client and a window
 */
function limitCandidates(busiest: BusiestWindows, counts: NumberCounts): SuggestedLimit[] {
  if (busiest.sorted.length === 0) return [];
  return DIVISORS.map((divisor) => ({
    share: 1 / divisor,
    ...deniedBy(lowestLimit(busiest, divisor), busiest, counts),
  }));
}

/** Returns the limit that a rule should have first; undefined without clients. */
function proposedLimit(busiest: BusiestWindows, counts: NumberCounts): ProposedLimit | undefined {
  const { sorted, weight } = busiest;
  if (sorted.length === 0) return undefined;
  const areFew = sorted.length * weight < PROPOSED_DIVISOR;
  const divisor = areFew ? PROPOSED_DIVISOR_OF_FEW : PROPOSED_DIVISOR;
  return deniedBy(kindLimit(lowestLimit(busiest, divisor)), busiest, counts);
}

function lowestLimit({ sorted }: BusiestWindows, divisor: number): number {
  // This number of the busiest clients may be denied, but not the one before them.
  const deniable = Math.floor(sorted.length / divisor);
  return sorted[sorted.length - 1 - deniable] as number;
}

function deniedBy(
  limit: number,
  { sorted, weight }: BusiestWindows,
  counts: NumberCounts,
): ProposedLimit {
  const clientsDenied = clientsAbove(limit, sorted) * weight;
  return { limit, clientsDenied, requestsDenied: counts.excessOver(limit) };
}

/** Returns how many of the sorted numbers are above a limit. */
function clientsAbove(limit: number, sorted: Uint32Array): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) > limit) high = middle;
    else low = middle + 1;
  }
  return sorted.length - low;
}

/** Returns how many clients have 1, 2, 3 to 4, 5 to 8 … requests in their busiest window. */
function histogramOf({ sorted, weight }: BusiestWindows): HistogramBar[] {
  const bars: HistogramBar[] = [];
  const max = sorted.at(-1) ?? 0;
  let below = 0;
  for (let to = 1; below < sorted.length; to *= 2) {
    const upTo = sorted.length - clientsAbove(to, sorted);
    const from = Math.floor(to / 2) + 1;
    bars.push({ from, to: Math.max(from, Math.min(to, max)), clients: (upTo - below) * weight });
    below = upTo;
  }
  return bars;
}

/** A client that was among the loudest at some time. */
interface LoudEntry {
  /** The client as reports show it. */
  readonly client: string;
  /** The hash of the client's identity. */
  readonly high: number;
  readonly low: number;
  /** The most requests in one window, and when that window began. */
  busiest: number;
  busiestStart: number;
  /** Requests since the client was among the loudest. */
  requests: number;
  succeeded: number;
  readonly userAgents: FrequentTexts;
  readonly paths: FrequentTexts;
}

/** How many clients are observed, at least, and at most twice as many. */
const OBSERVED = 512;
/** The maximum length of a client's text in a report. */
const MAX_CLIENT = 200;

/**
 * Observes the clients with the most requests in one window. The busiest windows are exact. The other facts miss
 * the requests that a client sent before it was among the 512 loudest.
 */
export class LoudClients {
  readonly #entries = new Map<string, LoudEntry>();
  /** A client with at most this number of requests in a window is not among the loudest. */
  #threshold = 0;

  /**
   * @param count the requests of this client in the current window, with this one
   * @param windowStart when the current window began
   */
  add(request: LogRequest, client: RequestClient, count: number, windowStart: number): void {
    let entry = this.#entries.get(client.identity);
    if (!entry) {
      if (count <= this.#threshold) return;
      entry = this.#insert(client);
    }
    entry.requests++;
    if (count > entry.busiest) {
      entry.busiest = count;
      entry.busiestStart = windowStart;
    }
    if (hasSucceeded(request)) entry.succeeded++;
    if (request.userAgent !== undefined) entry.userAgents.add(request.userAgent);
    entry.paths.add(`${request.method} ${withoutQuery(request.target)}`);
  }

  /** Returns the clients with the busiest windows, the loudest first. */
  top(count: number): LoudEntry[] {
    return this.#sorted()
      .slice(0, count)
      .map(([, entry]) => entry);
  }

  #insert({ identity, hash: { high, low }, shown }: RequestClient): LoudEntry {
    if (this.#entries.size >= 2 * OBSERVED) this.#shrink();
    const entry: LoudEntry = {
      ...{ client: ownText(shown().slice(0, MAX_CLIENT)), high, low },
      ...{ busiest: 0, busiestStart: 0, requests: 0, succeeded: 0 },
      ...{ userAgents: new FrequentTexts(), paths: new FrequentTexts() },
    };
    this.#entries.set(ownText(identity), entry);
    return entry;
  }

  #shrink(): void {
    const quieter = this.#sorted().slice(OBSERVED);
    this.#threshold = quieter[0]?.[1].busiest ?? 0;
    for (const [client] of quieter) this.#entries.delete(client);
  }

  #sorted(): [string, LoudEntry][] {
    return [...this.#entries].sort(
      ([, one], [, other]) =>
        other.busiest - one.busiest ||
        other.requests - one.requests ||
        compare(one.client, other.client),
    );
  }
}

/** A query may contain credentials. */
function withoutQuery(target: string): string {
  const end = target.indexOf("?");
  return end === -1 ? target : target.slice(0, end);
}

/** How many clients are counted exactly with one or two windows. Each of them takes up to 100 bytes. */
const MAX_CLIENTS = 2 ** 21;

interface SuggestTallyOptions {
  /** Count verified bots apart. */
  readonly separateBots: boolean;
  /** How many clients are counted exactly; a power of 2. */
  readonly maxClients?: number;
}

/** Counts requests by client and window. */
export class SuggestTally {
  /** Requests without those of verified bots. */
  requests = 0;
  /** For each client: its busiest window of each length, then its requests, then those that succeeded. */
  readonly clients: ClientCounts;
  /** One for each window, in the order of the windows. */
  readonly windows: readonly WindowCounter[];
  readonly bots: VerifiedBots;
  readonly loud = new LoudClients();
  readonly axis = new TimeAxis();
  readonly series: Series = this.axis.series();
  readonly #separateBots: boolean;

  /** @param windows the shortest window first */
  constructor(
    windows: readonly [Boundaries, ...Boundaries[]],
    { separateBots, maxClients = maxClientsFor(windows.length) }: SuggestTallyOptions,
  ) {
    this.#separateBots = separateBots;
    this.clients = new ClientCounts(windows.length + 2, maxClients);
    this.windows = windows.map(
      (window, index) =>
        new WindowCounter(window, maxClients, (high, low, requests, succeeded) =>
          this.#endWindow(index, high, low, requests, succeeded),
        ),
    );
    this.bots = new VerifiedBots(new WindowCounter(windows[0], maxClients));
  }

  /** Counts a request. The requests come in the order of their times. */
  add(request: LogRequest, client: RequestClient): void {
    const { at } = request;
    const bot = this.#separateBots ? botCategoryOf(request.cf) : undefined;
    if (bot !== undefined) {
      this.bots.add(bot, client.hash, at);
      return;
    }
    const { high, low } = client.hash;
    const shortest = this.windows[0] as WindowCounter;
    const count = shortest.add(high, low, at, hasSucceeded(request));
    for (let index = 1; index < this.windows.length; index++) {
      this.windows[index]?.add(high, low, at);
    }
    this.loud.add(request, client, count, shortest.startsAt);
    this.requests++;
    const step = this.axis.stepOf(at);
    this.series[step] = (this.series[step] as number) + 1;
  }

  /** Ends all windows. Call it after the last request. */
  finish(): void {
    for (const counter of this.windows) counter.end();
  }

  #endWindow(index: number, high: number, low: number, requests: number, succeeded: number): void {
    const { clients } = this;
    clients.raiseLevel((this.windows[index] as WindowCounter).level);
    const entry = clients.entryOf(high, low);
    if (entry < 0) return;
    const { counts, width } = clients;
    const first = entry * width;
    if (requests > (counts[first + index] as number)) counts[first + index] = requests;
    if (index > 0) return;
    counts[first + width - 2] = (counts[first + width - 2] as number) + requests;
    counts[first + width - 1] = (counts[first + width - 1] as number) + succeeded;
  }
}

/** More windows take more memory for each client. */
function maxClientsFor(windows: number): number {
  if (windows <= 2) return MAX_CLIENTS;
  return windows <= 4 ? MAX_CLIENTS / 2 : MAX_CLIENTS / 4;
}

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

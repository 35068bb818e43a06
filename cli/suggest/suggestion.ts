import { formatWindow } from "../../src/config/window.ts";
import type { ReportNote } from "../logs/needs.ts";
import type { LogSummary } from "../logs/progress.ts";
import type { ClientCounts, WindowCounts } from "./counts.ts";
import type { RequestedRule } from "./requested-rule.ts";

// The report of `weir suggest`, as `--json` prints it. docs/replay.md names it.

export interface Suggestion {
  /** The version of this form. Later versions of Weir may add fields to version 1, but change none. */
  readonly version: 1;
  readonly log: LogSummary;
  /** Present if the command was interrupted: the report is about the requests before that. */
  readonly isPartial?: true | undefined;
  /** The rule's name, match and key, in the notation of the configuration. */
  readonly name: string;
  readonly match: string;
  readonly key: string;
  readonly notes: readonly ReportNote[];
  /** Requests that match, without `requestsLeftOut`. */
  readonly requests: number;
  readonly clients: number;
  /** Requests of clients that came after the first two million, which are not counted. */
  readonly requestsLeftOut: number;
  readonly windows: readonly WindowSuggestion[];
  /** The clients with the most requests in one of the shortest windows, the loudest first; at most 10. */
  readonly loudest: readonly LoudClient[];
  /** A rule ready to paste into `rules`, in TypeScript; undefined without a request. */
  readonly rule: string | undefined;
}

export interface WindowSuggestion {
  /** In the notation of the configuration, such as `1m`. */
  readonly window: string;
  /** For each share: the lowest limit that at most this share of clients exceeds in any window. */
  readonly limits: readonly SuggestedLimit[];
  /**
   * The limit of 0.1 % (1 % of fewer than 1,000 clients), rounded up to a number that is easy to remember;
   * undefined without a client.
   */
  readonly proposed?: ProposedLimit | undefined;
}

export interface ProposedLimit {
  readonly limit: number;
  /** Clients with more requests than the limit in at least one window. */
  readonly clientsDenied: number;
  /** The requests above the limit, in all windows. */
  readonly requestsDenied: number;
}

export interface SuggestedLimit extends ProposedLimit {
  /** 0.01, 0.001 or 0.0001 of the clients. */
  readonly share: number;
}

export interface LoudClient {
  readonly client: string;
  readonly requests: number;
  /** The most requests in one of the shortest windows, and when that window began. */
  readonly busiest: number;
  readonly busiestStart: string;
  /** Requests whose logged status is below 400. */
  readonly succeeded: number;
}

/** The first digits of numbers that are easy to remember, in ascending order. */
const DIGITS = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100];

/** Rounds a limit up to a number that is easy to remember. A limit of up to 10 stays as it is. */
export function roundUpToMemorable(limit: number): number {
  if (limit <= 10) return limit;
  let factor = 1;
  while (factor * 100 < limit) factor *= 10;
  const digits = DIGITS.find((each) => each * factor >= limit) ?? 100;
  return digits * factor;
}

/** The suggested limits deny at most 1 %, 0.1 % and 0.01 % of the clients. */
const DIVISORS = [100, 1000, 10_000];

/**
 * The proposed limit denies at most 0.1 % of the clients. Of fewer than 1,000 clients, this share is less than one
 * client, so the limit would admit the busiest client, who may be an attacker. The share is then 1 %.
 */
const PROPOSED_DIVISOR = 1000;
const PROPOSED_DIVISOR_OF_FEW = 100;

const LOUDEST = 10;

/** Returns the report about counted requests, without the rule and without notes. */
export function buildSuggestion(
  { name, match, key, windows }: RequestedRule,
  counts: ClientCounts,
  log: LogSummary,
): Suggestion {
  counts.finish();
  return {
    ...{ version: 1, log, name, match, key, notes: [], rule: undefined },
    requests: counts.requests,
    clients: counts.clients,
    requestsLeftOut: counts.leftOut,
    windows: windows.map((window, index) => {
      const { limits, proposed } = limitsIn(counts.windows[index] as WindowCounts);
      return { window: formatWindow(window), limits, proposed };
    }),
    loudest: loudestClients(counts),
  };
}

/** In each window, the requests above the limit are denied, and no others: denied requests take no quota. */
function limitsIn(counts: WindowCounts): Pick<WindowSuggestion, "limits" | "proposed"> {
  const sorted = Uint32Array.from(counts.busiest).sort();
  if (sorted.length === 0) return { limits: [] };
  // This part of the busiest clients may be denied, but not the next client.
  const lowestLimit = (divisor: number) =>
    sorted[sorted.length - 1 - Math.floor(sorted.length / divisor)] as number;
  const deniedBy = (limit: number) => ({
    limit,
    clientsDenied: counts.busiest.filter((requests) => requests > limit).length,
    requestsDenied: counts.excessOver(limit),
  });
  const areFew = sorted.length < PROPOSED_DIVISOR;
  const divisor = areFew ? PROPOSED_DIVISOR_OF_FEW : PROPOSED_DIVISOR;
  return {
    limits: DIVISORS.map((each) => ({ share: 1 / each, ...deniedBy(lowestLimit(each)) })),
    proposed: deniedBy(roundUpToMemorable(lowestLimit(divisor))),
  };
}

function loudestClients({ texts, requestsOf, succeededOf, windows }: ClientCounts): LoudClient[] {
  const { busiest = [], busiestStart = [] } = windows[0] ?? {};
  const most = (client: number) => busiest[client] as number;
  return [...busiest.keys()]
    .sort((one, other) => most(other) - most(one) || one - other)
    .slice(0, LOUDEST)
    .map((client) => ({
      client: texts[client] as string,
      requests: requestsOf[client] as number,
      succeeded: succeededOf[client] as number,
      busiest: most(client),
      busiestStart: new Date(busiestStart[client] as number).toISOString(),
    }));
}

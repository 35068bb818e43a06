import type { ReportNote } from "../logs/needs.ts";
import type { LogSummary } from "../logs/progress.ts";

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
  /** Pairs of a client and a window with at least one request. */
  readonly clientWindows: number;
  /** Requests per client and window. */
  readonly median: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
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

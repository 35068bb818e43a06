import type { ReportNote } from "../logs/needs.ts";
import type { LogSummary } from "../logs/progress.ts";

// The report of a replay, as `--json` prints it. docs/replay.md names it. All times are in ISO 8601, UTC; shares are
// from 0 to 1.

/** A rule that is replayed. */
export interface ReplayedRule {
  readonly name: string;
  readonly mode: "enforce" | "shadow" | "mark";
  /** The key in the notation of the configuration. */
  readonly key: string;
  /** The limits as text, such as `10 per 1m, 200 per 1h`. */
  readonly limits: string;
  /** The methods, hosts and paths of `match` as a short text. */
  readonly match: string;
}

/** The report of `weir replay`. */
export interface ReplayReport {
  /** The version of this form. Later versions of Weir may add fields to version 1, but change none. */
  readonly version: 1;
  readonly log: LogSummary;
  /** The file of the configuration, as the user has written it. */
  readonly config: string;
  /** Present if the replay was interrupted: the report is about the part of the log that was read. */
  readonly isPartial?: true | undefined;
  /** The bounds on the command line that were exceeded, so that the command ends with 1. */
  readonly failed: readonly FailedBound[];
  readonly notes: readonly ReportNote[];
  readonly total: TotalReport;
  readonly rules: readonly RuleReport[];
  /** Rules that were not replayed. */
  readonly leftOut: readonly LeftOut[];
  /** Present with `--against`. */
  readonly comparison?: Comparison | undefined;
}

/** A rule that was not replayed. */
export interface LeftOut {
  readonly rule: string;
  readonly reason: string;
}

/** A bound that was exceeded. */
export interface FailedBound {
  readonly option: "--max-denied" | "--max-newly-denied";
  /** How many clients the option allows, and how many there are. */
  readonly allowed: number;
  readonly clients: number;
}

/** Numbers of requests and clients. */
export interface Counts {
  readonly requests: number;
  readonly allowed: number;
  readonly denied: number;
  /** denied / requests; 0 if there are no requests. */
  readonly deniedShare: number;
  /** Denied requests whose logged status is below 400: they had succeeded. Absent if the log states no statuses. */
  readonly deniedSucceeded: number | undefined;
  readonly clients: number;
  /** Clients with at least one denied request. */
  readonly clientsDenied: number;
}

/** All requests. A client is an address. Rules in shadow mode deny nothing here. */
export interface TotalReport extends Counts {
  /** Requests that no rule matches. They count as allowed. */
  readonly unmatched: number;
  /** The clients with the most denied requests, the most denied first; at most 20. */
  readonly mostDenied: readonly DeniedClient[];
}

/**
 * One rule. `denied` counts the requests that exceed its limits; `allowed` counts all others, even if another rule
 * denied them. The rule's key tells clients apart.
 */
export interface RuleReport extends Counts, ReplayedRule {
  /** With `concurrent`: the highest number of open requests that any one client had. */
  readonly mostOpen?: number | undefined;
  readonly mostDenied: readonly DeniedClient[];
}

export interface DeniedClient {
  readonly client: string;
  readonly requests: number;
  readonly denied: number;
  readonly deniedSucceeded: number | undefined;
  readonly firstDenied: string;
  readonly lastDenied: string;
}

/** The verdicts of the configuration, compared with those of another configuration. */
export interface Comparison {
  /** The file of the other configuration, as the user has written it. */
  readonly against: string;
  readonly notes: readonly ReportNote[];
  readonly leftOut: readonly LeftOut[];
  /** The requests and clients that the other configuration denies. */
  readonly before: Pick<Counts, "denied" | "clientsDenied">;
  /** Numbers of requests, by the verdicts of both configurations. */
  readonly requests: {
    readonly allowedByBoth: number;
    readonly deniedByBoth: number;
    readonly newlyDenied: number;
    readonly newlyDeniedSucceeded: number | undefined;
    readonly newlyAllowed: number;
  };
  /** Numbers of clients. A client is an address. */
  readonly clients: {
    /** Denied at least once, but never under the other configuration. */
    readonly newlyDenied: number;
    readonly noLongerDenied: number;
  };
  /** The clients with the most newly denied requests; at most 20. */
  readonly mostNewlyDenied: readonly ComparedClient[];
}

export interface ComparedClient {
  readonly client: string;
  readonly requests: number;
  readonly deniedBefore: number;
  readonly denied: number;
  readonly newlyDenied: number;
  /** Newly denied requests whose logged status is below 400. Absent if the log states no statuses. */
  readonly newlyDeniedSucceeded: number | undefined;
}

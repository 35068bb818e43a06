// The sums that isolates add up in memory and hand over. They contain no addresses and no API keys:
// clients appear only as identities, which are hashes.

/** The length of the shortest bucket of the statistics. */
export const MINUTE_MS = 60_000;

/**
 * How many requests a rule has counted, by their outcome, and how near its clients were to its limit. A request has at most one of the outcomes. It
 * has none if a different rule denied it, or if the rule is in shadow mode and would have admitted it.
 */
export interface RuleSums {
  /** Requests to which the rule applied, including those that a different rule denied. */
  requests: number;
  /** Requests that passed with this rule enforced, or within its limit if its mode is `mark`. */
  allowed: number;
  /**
   * Requests that this enforced rule denied. If several rules deny a request, it counts for the
   * first of them in the order of the configuration.
   */
  limited: number;
  /** Requests over the limit of this rule with `mode: "mark"`, which passed. */
  marked: number;
  /**
   * Requests for which the store could not decide this rule, whether they passed or not. If this
   * isolate decided the rule alone (`onError: "local"`), they count as allowed or limited instead.
   */
  undecided: number;
  /** Requests that this rule in shadow mode would have denied. */
  shadowLimited: number;
  /**
   * The largest part of a limit that any client had used when a request was decided, from 0 to 1. 1:
   * the limit was reached or exceeded. 0: unknown, or no quota was used. Sums add up by their maximum.
   *
   * It is unknown for a rule in shadow mode that would have denied no request, and while this isolate
   * decides alone without denying a request.
   */
  peak: number;
}

/**
 * How many requests this isolate has handled, by the outcome for the client. `requests` is the sum of
 * `unmatched`, `refused`, `allowed`, `limited`, `undecidedPassed` and `undecidedDenied`.
 *
 * The calls of programs count too: each call of `limit` is a request. Calls that take no quota, such
 * as `check`, and calls that give quota back do not count.
 */
export interface RequestSums {
  requests: number;
  /** Requests to which no rule applied. They passed. */
  unmatched: number;
  /** Requests that got 400 or 414, because Weir could not read their address. No rule counts them. */
  refused: number;
  allowed: number;
  limited: number;
  /** Requests that passed although the store could not decide them. */
  undecidedPassed: number;
  /** Requests that got 503 because the store could not decide them. */
  undecidedDenied: number;
  /**
   * Requests whose enforced rules were decided without a call to the store: from leases or remembered
   * denials, because a limit is 0, or because the store is in memory. They are allowed or limited.
   */
  fromMemory: number;
  /**
   * Requests that this isolate decided alone, because the store had failed (`onError: "local"`). They
   * are allowed or limited.
   */
  countedLocally: number;
}

/** The calls to the store. */
export interface StoreSums {
  calls: number;
  failures: number;
  /**
   * Billed commands of Redis. Weir estimates them from the counters of each call by the tables in
   * docs/cost.md. 0 for other stores, and for calls that failed.
   */
  commands: number;
  /** Calls by duration. Bucket i counts calls of at most {@link LATENCY_BOUNDS_MS}[i]; the last one the rest. */
  latency: number[];
  /** The sum of all durations, in milliseconds. */
  latencyMs: number;
}

/** The upper bounds of the buckets of the latency histogram, in milliseconds. */
export const LATENCY_BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] as const;

/** The sums of one minute. */
export interface MinuteSums {
  /** The number of the minute since the Unix epoch, by the isolate's clock. */
  readonly minute: number;
  readonly requests: RequestSums;
  readonly store: StoreSums;
  /** The sums of each rule that applied to a request, by the rule's name. */
  readonly rules: Record<string, RuleSums>;
}

/** A client that a rule has limited. */
export interface LimitedClient {
  readonly rule: string;
  /** The client's identity under the rule. */
  readonly client: string;
  /** How often the client was limited; an upper bound, too high by at most `error`. */
  readonly count: number;
  /** The error of `count`, because a sketch of bounded size counts the clients. */
  readonly error: number;
  /** When the client was last limited, in milliseconds since the Unix epoch. */
  readonly lastAt: number;
  /** Whether the rule was in shadow mode, so that the client was not denied. */
  readonly shadow: boolean;
}

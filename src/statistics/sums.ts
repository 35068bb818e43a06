// The sums that isolates add up in memory and upload. They contain no addresses and no API keys: clients appear only
// as identities, which are hashes.

/** The length of the shortest bucket of the statistics. */
export const MINUTE_MS = 60_000;

/**
 * The requests of a rule by their outcome, and the largest used part of its limit. A request has at most one outcome.
 * It has none if a different rule denied it, or if the rule is in shadow mode and would have admitted it.
 */
export interface RuleSums {
  /** Requests to which the rule applied, including requests that a different rule denied. */
  requests: number;
  /** Requests that passed this enforced rule, or were within the limit of this rule with `mode: "mark"`. */
  allowed: number;
  /**
   * Requests that this enforced rule denied. If several rules deny a request, the request counts for the first one in
   * the order of the configuration.
   */
  limited: number;
  /** Requests over the limit of this rule with `mode: "mark"`, which passed. */
  marked: number;
  /** Requests that passed before the store had decided this rule with `async`. They have an outcome too. */
  ahead: number;
  /** Requests of these that the store denied later. */
  over: number;
  /**
   * Requests, passed or denied, for which the store could not decide this rule. Requests that this isolate decided
   * alone (`onError: "local"`) count as allowed or limited instead.
   */
  undecided: number;
  /** Requests that this rule in shadow mode would have denied. */
  shadowLimited: number;
  /**
   * The largest part of a limit that a client had used when a request was decided, from 0 to 1. 1: the limit was
   * reached or exceeded. 0: no quota was used, or the part is unknown. The sum of several peaks is their maximum.
   *
   * The part is unknown for a rule in shadow mode without a denial, and while this isolate decides alone without a
   * denial.
   */
  peak: number;
  /**
   * The highest number of open requests that one client had when a request was decided (`concurrent`). The sum of
   * several numbers is their maximum. Missing if no such number is known: the rule has no `concurrent`, this isolate
   * decided alone, or the sender has an older version of Weir.
   */
  openPeak?: number;
}

/**
 * The requests that this isolate has handled, by the outcome for the client. `requests` is the sum of `unmatched`,
 * `refused`, `allowed`, `limited`, `undecidedPassed` and `undecidedDenied`.
 *
 * The calls of programs count too: each call of `limit` is a request. Calls that take no quota, such as `check`, and
 * calls that give quota back do not count.
 */
export interface RequestSums {
  requests: number;
  /** Requests to which no rule applied. They passed. */
  unmatched: number;
  /** Requests that got 400 or 414, because Weir could not read their URL. No rule counts them. */
  refused: number;
  allowed: number;
  limited: number;
  /** Requests that passed although the store could not decide them. */
  undecidedPassed: number;
  /** Requests that got 503 because the store could not decide them. */
  undecidedDenied: number;
  /**
   * Allowed or limited requests whose enforced rules were decided without a call to the store: from leases or cached
   * denials, because a limit is 0, or because the store is in memory.
   */
  fromMemory: number;
  /**
   * Allowed or limited requests that this isolate decided alone, because the store had failed (`onError: "local"`).
   */
  countedLocally: number;
  /** Allowed requests that passed before the store had decided them (`async`). */
  ahead: number;
  /** Requests of these that the store denied later. */
  over: number;
  /** Requests that have waited for their turn (`wait`), with any outcome. */
  waited: number;
  /** The sum of their waits, in milliseconds. */
  waitedMs: number;
}

/**
 * The calls to the store: REST calls to Upstash, or calls to Durable Objects, except waits for slots. One call can
 * decide many requests, and a decision can take several calls to objects.
 */
export interface StoreSums {
  calls: number;
  failures: number;
  /** The billed commands of Redis, as the script has counted them. 0 for other stores and for failed calls. */
  commands: number;
  /**
   * Calls by duration. Bucket i counts calls of at most {@link LATENCY_BOUNDS_MS}[i]; the last bucket counts the
   * rest.
   */
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
  /** The number of times that the client was limited: an upper bound, too high by at most `error`. */
  readonly count: number;
  /** The maximum error of `count`, because a sketch of bounded size counts the clients. */
  readonly error: number;
  /** When the client was last limited, in milliseconds since the Unix epoch. */
  readonly lastAt: number;
  /** Whether the rule was in shadow mode, so that the client was not denied. */
  readonly shadow: boolean;
}

// Empty sums, and functions that add sums. A missing sum counts as 0, because the sender may have another version of
// Weir.

export function noRequests(): RequestSums {
  return {
    requests: 0,
    unmatched: 0,
    refused: 0,
    allowed: 0,
    limited: 0,
    undecidedPassed: 0,
    undecidedDenied: 0,
    fromMemory: 0,
    countedLocally: 0,
    ahead: 0,
    over: 0,
    waited: 0,
    waitedMs: 0,
  };
}

export function noRuleSums(): RuleSums {
  return {
    requests: 0,
    allowed: 0,
    limited: 0,
    marked: 0,
    ahead: 0,
    over: 0,
    undecided: 0,
    shadowLimited: 0,
    peak: 0,
  };
}

export function noStoreSums(): StoreSums {
  const latency = new Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0);
  return { calls: 0, failures: 0, commands: 0, latency, latencyMs: 0 };
}

export function noSums(minute: number): MinuteSums {
  return { minute, requests: noRequests(), store: noStoreSums(), rules: {} };
}

/** Adds sums to `total`. */
export function addRequests(total: RequestSums, added: Readonly<RequestSums>): void {
  addFields(total, added, REQUEST_FIELDS);
}

/** Adds the sums of a rule to `total`. The new `peak` is the larger of both peaks, and `openPeak` too. */
export function addRuleSums(total: RuleSums, added: Readonly<RuleSums>): void {
  addFields(total, added, RULE_COUNTS);
  if (added.peak > total.peak) total.peak = added.peak;
  if (added.openPeak !== undefined) raiseOpenPeak(total, added.openPeak);
}

export function raiseOpenPeak(sums: RuleSums, open: number): void {
  sums.openPeak = Math.max(sums.openPeak ?? 0, open);
}

/** Adds the sums of calls to the store to `total`. */
export function addStoreSums(total: StoreSums, added: Readonly<StoreSums>): void {
  addFields(total, added, ["calls", "failures", "commands", "latencyMs"]);
  for (const index of total.latency.keys()) {
    total.latency[index] = (total.latency[index] ?? 0) + (added.latency?.[index] ?? 0);
  }
}

const REQUEST_FIELDS = Object.keys(noRequests()) as (keyof RequestSums)[];
const RULE_COUNTS = (Object.keys(noRuleSums()) as Exclude<keyof RuleSums, "openPeak">[]).filter(
  (field) => field !== "peak",
);

function addFields<Field extends string>(
  total: Record<Field, number>,
  added: Readonly<Partial<Record<Field, number>>>,
  fields: readonly Field[],
): void {
  for (const field of fields) total[field] = (total[field] ?? 0) + (added[field] ?? 0);
}

/** The sums of a minute in progress. */
export class MinuteRecord {
  readonly minute: number;
  readonly requests = noRequests();
  readonly store = noStoreSums();
  /** The sums by the names of rules. Unlike an object, a map keeps a rule with the name `__proto__` too. */
  readonly #rules = new Map<string, RuleSums>();

  constructor(minute: number) {
    this.minute = minute;
  }

  /** Returns the sums of a rule, to which the caller adds. */
  ruleSums(name: string): RuleSums {
    let sums = this.#rules.get(name);
    if (!sums) {
      sums = noRuleSums();
      this.#rules.set(name, sums);
    }
    return sums;
  }

  /** Adds the sums of another minute. */
  add({ requests, store, rules }: MinuteSums): void {
    addRequests(this.requests, requests);
    addStoreSums(this.store, store);
    for (const [name, sums] of Object.entries(rules)) addRuleSums(this.ruleSums(name), sums);
  }

  /** Returns the sums as plain data. */
  toSums(): MinuteSums {
    const { minute, requests, store } = this;
    return { minute, requests, store, rules: Object.fromEntries(this.#rules) };
  }
}

import type { Config } from "../../src/config/schema.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import type { RequestForm } from "../logs/request-form.ts";
import type { ClientHash } from "../tally/client-hash.ts";

// The contract between the engines that replay requests and the code that adds up their verdicts.

/** The verdict of one rule on one request. */
export interface RuleVerdict {
  /** The index of the rule in `ReplayEngine.rules`. */
  readonly rule: number;
  /**
   * The client under this rule: the values of its key, in clear, such as `203.0.113.7` or
   * `203.0.113.7, /login`. Values that may be credentials are shortened to a few characters and a hash.
   */
  readonly client: string;
  /** Whether the request exceeds a limit of this rule. For a rule in shadow mode: would exceed. */
  readonly denied: boolean;
  /** The first window that denied, or the rule's first window; milliseconds since the Unix epoch. */
  readonly windowStart: number;
  readonly windowEnd: number;
  /** The policy of this window, such as `search/1m`. */
  readonly policy: string;
}

/** A request with the verdicts of all rules that match it. Valid only until `onDecided` returns. */
export interface ReplayedRequest {
  readonly request: LogRequest;
  /** What the client gets: only enforced rules deny. `unmatched`: no rule applies. */
  readonly outcome: "allowed" | "limited" | "undecided" | "unmatched";
  readonly verdicts: readonly RuleVerdict[];
}

/** Receives the verdicts on requests that have no objects. */
export interface VerdictTally {
  /** While there are at most so many clients, their requests may be counted at any later time. */
  readonly exactClients: number;
  /** Counts requests of an address. */
  addSeen(hash: ClientHash, requests: number): void;
  /** Counts requests of a client under a rule. */
  addSeenUnder(rule: number, hash: ClientHash, requests: number): void;
  /**
   * Adds a request without its verdicts.
   *
   * @param hash the hash of the client's address; undefined if the log does not state it, or if no rule denies the
   * request and `addSeen` counts it
   * @param request may be undefined if no rule denies it
   * @returns the step of its time
   */
  addOutcome(
    outcome: ReplayedRequest["outcome"],
    at: number,
    hash: ClientHash | undefined,
    request: LogRequest | undefined,
  ): number;
  /**
   * Adds the verdict of one rule.
   *
   * @param at the time of the request
   * @param step the step of that time
   * @param hash the hash of the verdict's client; undefined if the rule does not deny the request, and
   * `addSeenUnder` counts it
   * @param request may be undefined if no rule denies it
   */
  addVerdict(
    verdict: RuleVerdict,
    at: number,
    step: number,
    hash: ClientHash | undefined,
    request: LogRequest | undefined,
  ): void;
}

/** A part of an engine that decides requests in a form of its own, in less time and memory. */
export interface CompactReplay {
  readonly form: RequestForm<number>;
  /** Decides requests in the order of their times. Each request can be decided once. */
  replay(requests: readonly number[], tally: VerdictTally): void;
}

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

/** Something about a replay that its reader must know. */
export interface ReplayNote {
  /** A stable name, such as `key-not-logged`. */
  readonly code: string;
  /** The rule that the note is about; undefined for the whole replay. */
  readonly rule?: string;
  /** What was assumed or left out, why, and how to change that. */
  readonly text: string;
}

/** The calls to the store that the replayed requests would have made. */
export interface StoreUsage {
  /** Calls: REST calls to Upstash, or calls to Durable Objects. */
  readonly calls: number;
  /** Commands that Upstash would bill. */
  readonly commands: number;
}

export interface ReplayOptions {
  /** Decide as this many isolates with leases and denial caches; undefined: exactly, by one store. */
  readonly isolates?: number | undefined;
  /** For the random numbers of `isolates`. */
  readonly seed?: number | undefined;
  /** Treat values that the log does not state as absent, instead of leaving the rule out. */
  readonly missingAsAbsent?: boolean | undefined;
  /** For how many clients the compact engine has space at first; a power of two. For tests. */
  readonly firstCapacity?: number | undefined;
}

/** Replays requests through the rules of one configuration. */
export interface ReplayEngine {
  readonly rules: readonly ReplayedRule[];
  /** What is assumed, and which rules are left out, because the log lacks what they need. */
  readonly notes: readonly ReplayNote[];
  /** The names of the rules that are left out; `notes` has the reasons. */
  readonly leftOut: readonly string[];
  /** Notes that only the end of the replay shows. Complete after `finish`. */
  readonly laterNotes: readonly ReplayNote[];
  /**
   * Decides requests in the order of their times. With `isolates`, requests may be decided in another order,
   * and during a later call or `finish`, which call the last `onDecided`.
   */
  replay(
    requests: readonly LogRequest[],
    onDecided: (replayed: ReplayedRequest) => void,
  ): void | Promise<void>;
  /**
   * Does the same as `replay` with the same result, and is used in place of it. Undefined if the rules need
   * more than the lines of an access log in the usual form. Requests must have addresses.
   */
  readonly compact?: CompactReplay | undefined;
  /** Decides what is still under way. */
  finish(): Promise<StoreUsage>;
}

/** Creates the engine for a configuration, and decides which rules the log's facts suffice for. */
export type CreateReplayEngine = (
  config: Config,
  facts: LogFacts,
  options: ReplayOptions,
) => ReplayEngine;

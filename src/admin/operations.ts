import type { Quota } from "../config/custom.ts";
import type { Fault } from "../config/faults.ts";
import type {
  Actor,
  AuditEntry,
  ChangeResult,
  DenialsQuery,
  OverrideChange,
  StatisticsQuery,
  StatisticsReport,
  StoredDenials,
  Totals,
} from "../control/protocol.ts";
import type { DescribedRequest, Explanation } from "../explain/explanation.ts";
import type { Override } from "../overrides/override.ts";

// The data that operators can read and change. The API, the dashboard and the metrics call these operations, so that
// all of them show and allow the same.

/** A rule as operators see it, without secrets. */
export interface RuleView {
  readonly name: string;
  /** The key in the notation of the configuration, such as `header:x-api-key | ip`. */
  readonly key: string;
  readonly mode: "enforce" | "shadow" | "mark" | "off";
  /** The mode in the configuration, which an override may replace. */
  readonly configuredMode: "enforce" | "shadow" | "mark";
  readonly onError: "open" | "closed" | "local";
  /** The quota of each window, and the maximum of open requests, after the rule's override. */
  readonly limits: readonly {
    readonly policy: string;
    readonly limit: number;
    readonly window: string;
    /** Present if clients have numbers of their own, of which none is above `max`. Then `limit` is the default. */
    readonly source?: { readonly from: string; readonly max: number };
    /** Present if `limit` is the maximum number of open requests. Then `window` is no window. */
    readonly concurrent?: true;
  }[];
  /** The longest time for which a request waits for its turn, in milliseconds; undefined if none waits. */
  readonly waitMs?: number;
  /** Present if a request may pass before the store has decided it. */
  readonly async?: true;
  readonly hasTiers: boolean;
  readonly hasBan: boolean;
  /** The methods, hosts and paths of `match` as a short text, such as `POST /login`. */
  readonly match: string;
  readonly override?: Override;
}

/**
 * The client that an operator looks up: by its identity, or by values that the operator knows. The names of the
 * values are alternatives in keys, such as `{ "ip": "203.0.113.7" }` or `{ "header:x-api-key": "abc" }`. The values
 * are hashed and not stored.
 */
export type ClientSelector =
  | { readonly client: string }
  | { readonly known: Readonly<Record<string, string>> };

/** A quota of a client that an operator looks up. */
export interface ReportedQuota extends Quota {
  /**
   * Set if the limit is a number of each client that is unknown here, because there is no request. `limit` is then the
   * default, and `remaining` and `violated` hold for the default only.
   */
  readonly isUnknown?: true;
}

/** A client's state under one rule. */
export interface ClientReport {
  readonly rule: string;
  readonly client: string;
  /** The alternatives of the key by which the client was found, such as `ip`; undefined for an identity. */
  readonly countedBy?: string | undefined;
  /** Where the client's own numbers came from, before overrides, such as `5000 from custom:quota`. */
  readonly limitSource?: string;
  /** The quotas of a client without a tier. `violated`: a request that costs 1 is denied. */
  readonly quotas: readonly ReportedQuota[];
  /**
   * The quotas that the client would have in each tier, because only a request shows the client's tier. If a tier's
   * name may be a credential, the tier's number replaces it, such as `#1`.
   */
  readonly tiers?: readonly { readonly tier: string; readonly quotas: readonly ReportedQuota[] }[];
  /** Milliseconds until the client's ban ends; 0 if there is none. */
  readonly banMs: number;
  /** The override of this client. */
  readonly override?: Override | undefined;
  /** The override of the whole rule, which may switch it off or change the limits in `quotas`. */
  readonly ruleOverride?: Override | undefined;
}

/** Changes a client's counters under a rule. @returns the client's state after the change */
type ChangeClient = (
  selector: ClientSelector,
  rule: string,
  by: Actor,
  why: string,
) => Promise<readonly ClientReport[]>;

/** @throws {OperationError} for input that makes the operation impossible */
export interface AdminOperations {
  rules(): Promise<readonly RuleView[]>;
  statistics(query: StatisticsQuery): Promise<StatisticsReport>;
  totals(): Promise<Totals>;
  /** Returns the kept denials, the newest first. @param selector undefined for the denials of all clients */
  denials(
    query: Omit<DenialsQuery, "clients">,
    selector?: ClientSelector,
  ): Promise<readonly StoredDenials[]>;
  /** Returns the identities that a client can have under a rule. Reads no counters. */
  identify(selector: ClientSelector, rule: string): Promise<readonly { readonly client: string }[]>;
  /** Reads a client under one rule, or under each rule that can count it. Takes no quota. */
  peek(selector: ClientSelector, rule?: string): Promise<readonly ClientReport[]>;
  /** Removes the client's counts, and its ban. Adds an entry to the audit list. */
  reset: ChangeClient;
  /** Removes the client's ban, but keeps its counts. Adds an entry to the audit list. */
  liftBan: ChangeClient;
  overrides(): Promise<readonly Override[]>;
  setOverride(change: OverrideChange, by: Actor): Promise<ChangeResult>;
  removeOverride(id: string, by: Actor, why: string): Promise<Override | undefined>;
  audit(limit: number, before?: number): Promise<readonly AuditEntry[]>;
  explain(request: DescribedRequest): Promise<Explanation>;
}

/**
 * The reason why an operation failed. `unavailable`: the store or the control object is missing or failed, and
 * nothing was changed. `uncertain`: one of them failed, and the change may have been made.
 */
export type OperationFailure =
  | "not-found"
  | "invalid"
  | "unsupported"
  | "forbidden"
  | "conflict"
  | "unavailable"
  | "uncertain";

/** An operation that failed. The message contains no value of a client. */
export class OperationError extends Error {
  override readonly name = "OperationError";
  readonly kind: OperationFailure;
  /** The faults of the input, if the kind is `invalid`. */
  readonly faults: readonly Fault[] | undefined;

  constructor(kind: OperationFailure, message: string, faults?: readonly Fault[]) {
    super(message);
    this.kind = kind;
    this.faults = faults;
  }
}

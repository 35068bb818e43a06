import type { Override, OverrideUpdate } from "../overrides/override.ts";
import type { Denials } from "../statistics/denials.ts";
import type {
  LimitedClient,
  MinuteSums,
  RequestSums,
  RuleSums,
  StoreSums,
} from "../statistics/sums.ts";

// The calls between isolates and the Durable Object `ControlObject`. During a deploy, the versions of caller and
// object may differ.

/** An isolate's upload, sent at most once in {@link UPLOAD_INTERVAL_MS}. */
export interface StatisticsUpload {
  /** A random id of the isolate. */
  readonly source: string;
  /**
   * The number of this upload of the source, greater than the number of the previous upload. A caller repeats an
   * upload if it does not know whether the upload arrived. A repetition has the same number and content. An upload
   * without sums has the number 0.
   */
  readonly sequence: number;
  readonly minutes: readonly MinuteSums[];
  readonly clients: readonly LimitedClient[];
  /** The denials of clients by the minute. Missing in uploads of an older version. */
  readonly denials?: readonly Denials[];
  /** Whether the source's breaker is open, so that the source does not call the store. */
  readonly breakerOpen: boolean;
  /** The version of the overrides that the source has; 0 if it has none. */
  readonly overridesVersion: number;
}

/** The interval at which an isolate calls, in milliseconds, unless an answer says otherwise. */
export const UPLOAD_INTERVAL_MS = 5000;

/**
 * The longest time until an isolate calls again, in milliseconds. It bounds the age of overrides. The runtime ends a
 * waiting upload 30 s after the last response.
 */
export const MAX_UPLOAD_INTERVAL_MS = 25_000;

export interface UploadAnswer {
  /** Undefined if the source has the newest overrides. */
  readonly overrides?: OverrideUpdate;
  /** The time after this call at which the isolate calls again, in milliseconds. */
  readonly callAgainMs: number;
}

export type Resolution = "minute" | "hour" | "day";

/** The selection of statistics to read. */
export interface StatisticsQuery {
  readonly resolution: Resolution;
  /** The start of the first bucket, in milliseconds since the Unix epoch. */
  readonly from: number;
  /** The end of the last bucket, in milliseconds since the Unix epoch; exclusive. */
  readonly until: number;
  /** Only the sums of this rule. */
  readonly rule?: string;
}

/** The sums of one minute, hour or day. */
export interface Bucket {
  /** When the bucket begins, in milliseconds since the Unix epoch. */
  readonly at: number;
  readonly requests: RequestSums;
  readonly store: StoreSums;
}

export interface StatisticsReport {
  readonly resolution: Resolution;
  /** One bucket for each minute, hour or day with requests, in the order of time. */
  readonly buckets: readonly Bucket[];
  /** The sums of each rule over the whole time, by the rule's name. */
  readonly rules: Readonly<Record<string, RuleSums>>;
  /** The sums of the query's rule in each bucket, in the order of `buckets`; missing if the query names no rule. */
  readonly ruleBuckets?: readonly RuleSums[];
  /** The clients most limited since `clientsFrom`, the most limited first; at most 100. */
  readonly clients: readonly LimitedClient[];
  /**
   * The time from which `clients` are counted, in milliseconds since the Unix epoch. Clients are stored by hour. So
   * with the resolution `minute`, this is the start of the hour that contains the query's `from`. Undefined if the
   * control object has an older version.
   */
  readonly clientsFrom?: number;
  /** The number of isolates that uploaded sums in the last seconds. */
  readonly isolates: number;
  /** The number of these isolates whose breaker is open. */
  readonly openBreakers: number;
}

/** The selection of denials to read. All fields are optional. */
export interface DenialsQuery {
  readonly rule?: string | undefined;
  /** The identities of one client. */
  readonly clients?: readonly string[] | undefined;
  /** The start of the time, in milliseconds since the Unix epoch. Entries are read that overlap with the time. */
  readonly since?: number | undefined;
  /** The end of the time. */
  readonly until?: number | undefined;
  /** Only entries with a smaller id. */
  readonly before?: number | undefined;
  /** The maximum number of entries. @default all */
  readonly limit?: number | undefined;
}

/** Denials that the control object has stored. The id orders all of them, and grows with the time. */
export type StoredDenials = Denials & { readonly id: number };

/** The sums since the control object was created. They never decrease, as metrics require. */
export interface Totals {
  readonly since: number;
  readonly requests: RequestSums;
  readonly store: StoreSums;
  /** `openPeak` is the only number that can decrease: it is the highest number of the last five minutes. */
  readonly rules: Readonly<Record<string, RuleSums>>;
  readonly isolates: number;
  readonly openBreakers: number;
  readonly overrides: number;
}

/** The author of a change: `token`, `access:EMAIL`, or `rpc` for a call of `WeirService`. */
export type Actor = string;

/** A change that an operator has made. Entries are never changed; only the oldest are removed, after a million. */
export interface AuditEntry {
  /** The number of the entry, from 1. */
  readonly id: number;
  /** When the change was made, in milliseconds since the Unix epoch. */
  readonly at: number;
  readonly by: Actor;
  readonly action: "override" | "remove-override" | "reset" | "lift-ban" | "log-in";
  readonly rule?: string | undefined;
  /** The client's identity. */
  readonly client?: string | undefined;
  /** The state before the change, as JSON; undefined if there was none. */
  readonly before?: unknown;
  /** The state after the change. */
  readonly after?: unknown;
  /** The reason that the operator gave. */
  readonly why?: string | undefined;
}

/** The change that {@link ControlApi.setOverride} makes; the object adds `by` and `setAt`. */
export type OverrideChange<Each extends Override = Override> = Each extends Override
  ? Omit<Each, "by" | "setAt">
  : never;

/** The result of a change; `full`: {@link MAX_OVERRIDES} overrides already exist. */
export type ChangeResult =
  | { readonly ok: true; readonly override: Override }
  | { readonly ok: false; readonly fault: "full" };

/** The name of the object with all statistics, the overrides and the audit list. */
export const GLOBAL_OBJECT = "global";

/** The methods of the `ControlObject`. */
export interface ControlApi {
  /**
   * Adds sums, and returns the overrides that have changed. A repeated upload adds nothing. An upload without sums
   * only loads the overrides.
   */
  upload(upload: StatisticsUpload): Promise<UploadAnswer>;
  statistics(query: StatisticsQuery): Promise<StatisticsReport>;
  totals(): Promise<Totals>;
  /** Returns the kept denials, the newest first. */
  denials(query: DenialsQuery): Promise<readonly StoredDenials[]>;
  /** Returns all overrides that have not ended, the newest first. */
  overrides(): Promise<readonly Override[]>;
  setOverride(change: OverrideChange, by: Actor): Promise<ChangeResult>;
  /** @returns the override that was removed; undefined if there was none */
  removeOverride(id: string, by: Actor, why: string): Promise<Override | undefined>;
  /** Adds an entry about a change, such as a reset, that the object did not make itself. */
  addAuditEntry(entry: Omit<AuditEntry, "id" | "at">): Promise<void>;
  /** Returns entries, the newest first. @param before only entries with a smaller id */
  audit(limit: number, before?: number): Promise<readonly AuditEntry[]>;
}

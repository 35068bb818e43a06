import type { ResolvedBindings } from "../config/bindings.ts";
import type { CustomContext, Quota } from "../config/custom.ts";
import type { KeyPart } from "../config/key.ts";
import type { Config } from "../config/schema.ts";
import { areTierNamesSecret } from "../config/tiers.ts";
import type { ClientState } from "../limiter/clients.ts";
import type { Decision } from "../limiter/decision.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { Override } from "../overrides/override.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

// The explanation of a described request: the rules that apply, the reasons, and the decision that the request would
// get now. The admin API, the dashboard and the command `weir explain` show it.

/** A request that an operator describes. */
export interface DescribedRequest {
  readonly method: string;
  readonly url: string;
  /** The client's address is in `cf-connecting-ip`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Cloudflare's data about the client, such as `country` and `asn`. */
  readonly cf?: Readonly<Record<string, unknown>>;
  /** The body as text, for functions in `custom`. It has at most 64 KiB in UTF-8. */
  readonly body?: string;
}

export interface Explanation {
  /**
   * `limited`: an enforced rule would deny the request; with `waitMs`, only if its turn does not come. `unmatched`: no rule
   * applies. With a status, Weir itself answers the request.
   */
  readonly outcome: "allowed" | "limited" | "undecided" | "unmatched";
  readonly request: ExplainedRequest;
  readonly rules: readonly ExplainedRule[];
  readonly response: ExplainedResponse;
  /** The reason why the store could not be read, so that counters are missing; undefined if it could be read. */
  readonly storeFailure?: string;
  /**
   * How long a `limited` request would wait for its turn at most, in milliseconds; undefined if it would not wait.
   */
  readonly waitMs?: number;
}

/** The form of the request that rules match and from which keys are read. */
export interface ExplainedRequest {
  readonly method: string;
  readonly sentMethod: string;
  readonly isPreflight: boolean;
  readonly host: string;
  /** The canonical path. */
  readonly path: string;
  /** All paths that origins may read in the request. Rules match each of these paths. */
  readonly variants: readonly string[];
  /** Whether all origins read the path in the same way. */
  readonly isUnambiguous: boolean;
  /** The text that identifies the client's address: an address, an IPv6 network, `worker:ZONE` or `unknown`. */
  readonly client: string;
}

export interface ExplainedRule {
  readonly rule: string;
  readonly applies: boolean;
  /** The reason why the rule applies, or the first reason why it does not, as a sentence. */
  readonly why: string;
  /** The mode after overrides and WEIR_MODE. */
  readonly mode: "enforce" | "shadow" | "mark" | "off";
  /** The conditions of the rule in the order of the tests, up to the first failing one. */
  readonly conditions: readonly ExplainedCondition[];
  /** The elements of the key; empty if the rule does not apply. */
  readonly key: readonly ExplainedKeyElement[];
  /** The client's identity in stored keys and logs. */
  readonly client?: string;
  /** The tier of the client, if the rule has tiers and the client has one. */
  readonly tier?: string;
  /** Where the client's own numbers came from, before overrides, such as `5000 from custom:quota`. */
  readonly limitSource?: string;
  readonly cost?: number;
  /** The source of the cost, such as `cost: 5` or `the header content-length`. */
  readonly costSource?: string;
  /** Whether the request exceeds a limit of the rule, or the client is banned or blocked. */
  readonly exceeds?: boolean;
  /** The highest cost that the rule can ever admit. Present only if the request costs more, so that no retry helps. */
  readonly maxCost?: number;
  /** The quotas before the request. `violated`: a request that costs 1 is denied. */
  readonly quotas?: readonly Quota[];
  readonly counters?: readonly ExplainedCounter[];
  /** Milliseconds until the client's ban ends; 0 or undefined if there is none. */
  readonly banMs?: number;
  /** The longest time for which a request waits for its turn, in milliseconds; undefined if none waits. */
  readonly waitMs?: number;
  /** Present if a request may pass before the store has decided, over the limit once for each isolate and window. */
  readonly async?: true;
  /** The ban that this request would begin. */
  readonly newBan?: ExplainedBan;
  /** The override that changes the rule for this client, or for all clients. */
  readonly override?: Override;
}

export interface ExplainedCondition {
  /** The path of the field, such as `match.methods` or `match.except.query.export`. */
  readonly field: string;
  /**
   * `unknown`: the request does not show the result. `match` then counts the request, and `except` does not except
   * it.
   */
  readonly result: "holds" | "fails" | "unknown";
  /** The request's own value, such as `GET`. Never a text that only the configuration contains. */
  readonly actual: string;
  /** The rule's demand. Omits the texts of headers and of query parameters, because they may be secrets. */
  readonly expected: string;
  /** The reason why a condition fails although the request seems to fulfil it, as a sentence. */
  readonly note?: string;
}

/** A ban that a request would begin. */
export interface ExplainedBan {
  /** The key under which the ban is stored: see docs/storage.md. */
  readonly storedKey: string;
  /** When the ban would end, in milliseconds since the Unix epoch. */
  readonly until: number;
  /** Whether the ban would be longer after earlier bans of the client, because these cannot be read. */
  readonly isAtLeast: boolean;
}

/** One element of a key, with its alternatives up to the used one. */
export interface ExplainedKeyElement {
  readonly alternatives: readonly {
    /** In the notation of the configuration, such as `header:x-api-key`. */
    readonly part: string;
    /**
     * `used`: this alternative identifies the client. `absent`: the request lacks it, or its value is empty or too
     * long.
     */
    readonly result: "used" | "absent";
    /** The source of the value, such as `the header x-api-key`, or the reason why the value counts as absent. */
    readonly from: string;
    /** The value in its canonical form, if it is used. */
    readonly value?: string;
  }[];
  /** Whether the client's address is used, because no alternative is present. */
  readonly isFallback: boolean;
}

/** One counter of the client under a rule, with the values that the request would store. */
export interface ExplainedCounter {
  readonly policy: string;
  /** The number of the shard that this request may use; undefined if the rule has no shards. */
  readonly shard?: number;
  /** The quota that each window grants: the limit, or the shard's part of it. */
  readonly limit: number;
  /** The highest count at which requests are admitted: the limit, or more if quota rolls over. */
  readonly capacity: number;
  /** The count before the request. */
  readonly count: number;
  readonly cost: number;
  /** Present if the counter counts open requests. */
  readonly concurrent?: true;
  /**
   * Start and end of the window, in milliseconds since the Unix epoch. For open requests, the present time and the time
   * of a retry. For a sliding window, the start of the oldest sub-window that counts, and the time at which the first
   * one with a count does not count any more.
   */
  readonly windowStart: number;
  readonly windowEnd: number;
  /** The key under which the counter is stored: see docs/storage.md. */
  readonly storedKey: string;
  /** The count that the request would store; undefined if it would store nothing. */
  readonly countAfter?: number;
  /** When the stored key expires, in milliseconds since the Unix epoch; undefined if nothing is stored. */
  readonly expiresAt?: number;
}

/** Weir's own response, or its additions to the origin's response. */
export interface ExplainedResponse {
  /** The status of Weir's own response; undefined if the request is forwarded. */
  readonly status?: number;
  /** The headers that Weir sets or appends, by name. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The start of the body of Weir's own response. */
  readonly body?: string;
  /** The headers that the origin's request gets, by name. */
  readonly originHeaders?: readonly (readonly [name: string, value: string])[];
}

/** The maximum length of a value of the request in an explanation, in characters. */
const MAX_SHOWN = 200;
/** The maximum number of characters of a value that may be a credential. */
const MAX_REVEALED = 4;

/** Shortens a text of the request. */
export function shownText(text: string): string {
  return text.length <= MAX_SHOWN
    ? text
    : `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)`;
}

/** Shortens a text of the request, and puts it in quotation marks. */
export function quoted(text: string): string {
  return JSON.stringify(shownText(text));
}

/** Returns the start and the length of a text that may be a credential. */
export function shownCredential(text: string): string {
  const revealed = text.slice(0, Math.min(MAX_REVEALED, Math.floor(text.length / 3)));
  return `${revealed}… (${text.length} characters)`;
}

/** Matches the names of headers and query parameters whose values may be credentials. In doubt, a name matches. */
const CREDENTIAL_NAME =
  /auth|token|secret|key|pass|pwd|sess|sid|sig|cred|cookie|jwt|bearer|otp|pin|code|hash|nonce|[cx]srf/i;

/** Whether a header or a query parameter of this name may hold a credential. */
export function namesCredential(name: string): boolean {
  return CREDENTIAL_NAME.test(name);
}

/** Returns the value of a part of a key as an explanation shows it. */
export function shownValue(part: KeyPart, value: string): string {
  return isSecret(part) ? shownCredential(value) : shownText(value);
}

function isSecret(part: KeyPart): boolean {
  // Path parameters are not hidden, because the explanation shows the whole path anyway.
  return part.kind !== "param" && areTierNamesSecret([[part]]);
}

/** Returns a list of items as a text, with at most `max` of them. */
export function shownList(items: Iterable<string | number>, size: number, max = 10): string {
  const listed: string[] = [];
  for (const item of items) {
    if (listed.length === max) break;
    listed.push(String(item));
  }
  return listed.join(", ") + (size > max ? ` and ${size - max} more` : "");
}

/**
 * The methods of HTTP requests that Workers receive. The runtime answers 400 to any other method, also in lower case.
 */
export const METHODS: readonly string[] = (
  "GET HEAD POST PUT DELETE PATCH PURGE OPTIONS TRACE COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK ACL " +
  "REPORT MKACTIVITY CHECKOUT MERGE MSEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE QUERY"
).split(" ");

/** The allowed methods, as the end of a sentence. */
export const ALLOWED_METHODS = `a method that Workers receive, in upper case: ${METHODS.join(", ")}`;

/** The input of an explanation. In Node, `read` can call `readClients` with a memory store. */
export interface ExplainContext {
  readonly config: Config;
  readonly bindings: Pick<ResolvedBindings, "keySecret" | "secrets" | "mode" | "prefix">;
  /**
   * Reads the states of clients, and charges nothing.
   *
   * @throws {StoreError} if the store fails
   */
  readonly read: (appliedRules: readonly AppliedRule[]) => Promise<readonly ClientState[]>;
  /** Decides a request if the store fails, and charges nothing. If undefined, `explain` throws the store's error. */
  readonly decide?: (appliedRules: readonly AppliedRule[]) => Promise<Decision>;
  /** The second argument of the functions in `custom`. */
  readonly custom: CustomContext;
  /** Returns this machine's time, in milliseconds since the Unix epoch. */
  readonly now?: () => number;
}

/** The overrides at the time of an explanation. */
export interface ExplainOverrides {
  /** Applies the overrides to rules and clients. */
  readonly live: LiveOverrides;
  /** The overrides by their ids: see `overrideId`. */
  readonly byId: ReadonlyMap<string, Override>;
}

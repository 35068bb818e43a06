import type { KeyPart } from "../../src/config/key-expression.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import {
  type DecideOptions,
  type RuleCounter,
  ruleCountersOf,
} from "../../src/limiter/counters.ts";
import { isSettled } from "../../src/limiter/rule-cost.ts";
import type { AppliedRule } from "../../src/request/applied-rule.ts";
import { isExemptAddress } from "../../src/request/exempt-address.ts";
import { encodeValues, type RequestContext } from "../../src/request/identity.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import type { PathMatch } from "../../src/request/route-table.ts";
import {
  firstValue,
  identityHash,
  type KeyValue,
  keyValuesOf,
  UNKNOWN_ADDRESS,
} from "./client-key.ts";
import { clientText } from "./client-text.ts";
import type { LoggedRequest } from "./logged-request.ts";
import { ownText } from "./own-text.ts";
import { requestCostOf } from "./request-cost.ts";

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

/** A rule that counts a request, with the counters to decide. */
export interface AppliedClient {
  /** The index of the rule among the replayed rules. */
  readonly rule: number;
  /** The client, as reports show it. */
  readonly client: string;
  readonly appliedRule: AppliedRule;
  readonly ruleCounters: RuleCounter[];
}

/** A client under one rule. */
interface Client {
  readonly text: string;
  readonly identity: string;
  /** The counters, for each list of windows; empty if they differ between requests. */
  readonly applied: Map<readonly Window[], AppliedClient>;
}

export interface ClientOptions {
  /** Returns a number from 0 to less than 1, to choose between shards. */
  readonly random: () => number;
  /** Whether clients without an address are one client, as in the Worker. Otherwise they are skipped. */
  readonly countsUnknownAddress: boolean;
  /** The maximum number of cached clients. */
  readonly maxClients: number;
}

/** Turns the requests that one rule matches into counters. */
export class RuleClients {
  /** The number of requests that the rule does not count because their address is unknown. */
  withoutAddress = 0;
  readonly #rule: Rule;
  readonly #index: number;
  readonly #prefix: string;
  readonly #ipv6Prefix: number;
  readonly #options: ClientOptions;
  readonly #decideOptions: DecideOptions;
  /** Whether all requests of a client have the same counters. */
  readonly #isConstant: boolean;
  /** Whether the address alone identifies clients, which is the most frequent key. */
  readonly #isByAddress: boolean;
  readonly #readsAddress: boolean;
  readonly #clients: LruCache<Client>;

  constructor(
    rule: Rule,
    index: number,
    { prefix, ipv6Prefix }: Pick<Config, "prefix" | "ipv6Prefix">,
    options: ClientOptions,
  ) {
    const { cost, key, match, shards } = rule;
    this.#rule = rule;
    this.#index = index;
    this.#prefix = prefix;
    this.#ipv6Prefix = ipv6Prefix;
    this.#options = options;
    this.#decideOptions = { random: options.random };
    this.#isConstant =
      shards === 1 && !isSettled(rule) && (typeof cost === "number" || cost.before === undefined);
    this.#isByAddress = key.length === 1 && key[0]?.[0]?.kind === "ip";
    this.#readsAddress = match.ips !== undefined || match.except?.ips !== undefined;
    this.#clients = new LruCache(options.maxClients);
  }

  /**
   * Returns the counters of a request that the rule matches.
   *
   * @returns undefined if the request is exempt, or if its address is needed and unknown
   */
  apply(match: PathMatch, request: LoggedRequest): AppliedClient | undefined {
    const rule = this.#rule;
    if (rule.exempt && this.#isExempt(request)) return undefined;
    const context = this.#contextOf(match, request);
    const client = this.#clientOf(context);
    if (!client) {
      this.withoutAddress++;
      return undefined;
    }
    const windows = rule.tiers ? windowsFor(rule, context) : rule.windows;
    const cached = client.applied.get(windows);
    if (cached) return cached;
    const { identity, text } = client;
    const cost = requestCostOf(rule, windows, request);
    const appliedRule = { rule, windows, identity, ...(cost !== undefined && { cost }) };
    const ruleCounters = ruleCountersOf(appliedRule, this.#prefix, this.#decideOptions);
    const applied = { rule: this.#index, client: text, appliedRule, ruleCounters };
    if (this.#isConstant) client.applied.set(windows, applied);
    return applied;
  }

  #contextOf({ path, params }: PathMatch, request: LoggedRequest): RequestContext {
    return { request, path, params, ipv6Prefix: this.#ipv6Prefix };
  }

  #isExempt({ headers }: LoggedRequest): boolean {
    const { exempt } = this.#rule;
    if (!exempt) return false;
    if (isExemptAddress(exempt.networks, headers)) return true;
    // The value of a secret is unknown, and a note says so.
    return exempt.headers.some(({ name, value }) => headers.get(name) === value);
  }

  /** @returns undefined if the client's address is needed and unknown */
  #clientOf(context: RequestContext): Client | undefined {
    const { countsUnknownAddress } = this.#options;
    const address = context.request.headers.get("cf-connecting-ip");
    if (address === null && this.#readsAddress && !countsUnknownAddress) return undefined;
    const known = this.#isByAddress ? this.#clients.get(address ?? "") : undefined;
    if (known) return known;
    const values = keyValuesOf(this.#rule.key, context);
    if (!countsUnknownAddress && values.some(isUnknownAddress)) return undefined;
    const encoded = encodeValues(values);
    const cacheKey = this.#isByAddress ? ownText(address ?? "") : encoded;
    const cached = this.#clients.get(cacheKey);
    if (cached) return cached;
    const isLong = encoded.length > MAX_IDENTITY;
    const client: Client = {
      text: values.map(({ part, value }) => clientText(part, value)).join(", "),
      identity: this.#rule.spread || isLong ? identityHash(encoded) : encoded,
      applied: new Map(),
    };
    this.#clients.set(cacheKey, client);
    return client;
  }
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}

/** Returns the windows of a client's tier, as `windowsFor` of src/request/tier.ts. */
function windowsFor(rule: Rule, context: RequestContext): readonly Window[] {
  const alternatives: readonly KeyPart[] = rule.tiers?.by[0] ?? [];
  const present = firstValue(alternatives, context);
  return (present && rule.tiers?.windows.get(present.value)) ?? rule.windows;
}

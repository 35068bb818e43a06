import type { KeyPart } from "../../src/config/key-expression.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Counter } from "../../src/engine/counter.ts";
import { certainTalliesOf } from "../../src/limiter/certain-denial.ts";
import {
  countersOf,
  type DecideOptions,
  type RuleCounter,
  ruleCountersOf,
} from "../../src/limiter/counters.ts";
import { dependsOnResponse, isSettled } from "../../src/limiter/rule-cost.ts";
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
import { withMemo } from "./row-memo.ts";

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
  /** The counters of `ruleCounters`. */
  readonly counters: readonly Counter[];
  /**
   * Whether a request under this rule alone is one group that the store decides, and no response charges
   * the rule.
   */
  readonly isDecidedAlone: boolean;
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
  /** Whether counters remember their rows, which is possible if no wrapper copies them. */
  readonly remembersRows: boolean;
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
  readonly #readsAddress: boolean;
  readonly #clients: LruCache<Client>;
  /**
   * The clients by their addresses; undefined if more than the address determines the counters. Most
   * rules are so simple, and then nothing else of the request is read.
   */
  readonly #byAddress: LruCache<AppliedClient> | undefined;

  constructor(
    rule: Rule,
    index: number,
    { prefix, ipv6Prefix }: Pick<Config, "prefix" | "ipv6Prefix">,
    options: ClientOptions,
  ) {
    const { cost, exempt, key, match, shards, tiers } = rule;
    this.#rule = rule;
    this.#index = index;
    this.#prefix = prefix;
    this.#ipv6Prefix = ipv6Prefix;
    this.#options = options;
    this.#decideOptions = { random: options.random };
    this.#isConstant =
      shards === 1 && !isSettled(rule) && (typeof cost === "number" || cost.before === undefined);
    this.#readsAddress = match.ips !== undefined || match.except?.ips !== undefined;
    this.#clients = new LruCache(options.maxClients);
    const isByAddress = key.length === 1 && key[0]?.[0]?.kind === "ip";
    if (isByAddress && this.#isConstant && !exempt && !tiers) {
      this.#byAddress = new LruCache(options.maxClients);
    }
  }

  /**
   * Returns the counters of a request that the rule matches.
   *
   * @returns undefined if the request is exempt, or if its address is needed and unknown
   */
  apply(match: PathMatch, request: LoggedRequest): AppliedClient | undefined {
    const { address } = request;
    if (!this.#byAddress || address === undefined) return this.#apply(match, request);
    const cached = this.#byAddress.get(address);
    if (cached) return cached;
    const applied = this.#apply(match, request);
    if (applied) this.#byAddress.set(ownText(address), applied);
    return applied;
  }

  #apply(match: PathMatch, request: LoggedRequest): AppliedClient | undefined {
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
    const fresh = ruleCountersOf(appliedRule, this.#prefix, this.#decideOptions);
    const ruleCounters =
      this.#isConstant && this.#options.remembersRows ? fresh.map(withRowMemo) : fresh;
    const applied = {
      rule: this.#index,
      client: text,
      appliedRule,
      ruleCounters,
      counters: countersOf(ruleCounters),
      isDecidedAlone: !dependsOnResponse(rule) && !certainTalliesOf(ruleCounters, 0),
    };
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
    const isAddressed = context.request.headers.has("cf-connecting-ip");
    if (!isAddressed && this.#readsAddress && !countsUnknownAddress) return undefined;
    const values = keyValuesOf(this.#rule.key, context);
    if (!countsUnknownAddress && values.some(isUnknownAddress)) return undefined;
    const encoded = encodeValues(values);
    const cached = this.#clients.get(encoded);
    if (cached) return cached;
    const isLong = encoded.length > MAX_IDENTITY;
    const client: Client = {
      text: values.map(({ part, value }) => clientText(part, value)).join(", "),
      identity: this.#rule.spread || isLong ? identityHash(encoded) : encoded,
      applied: new Map(),
    };
    this.#clients.set(encoded, client);
    return client;
  }
}

function withRowMemo(ruleCounter: RuleCounter): RuleCounter {
  return { ...ruleCounter, counter: withMemo(ruleCounter.counter) };
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

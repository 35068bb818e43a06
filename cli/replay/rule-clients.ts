import type { KeyPart } from "../../src/config/key-expression.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { certainTalliesOf } from "../../src/limiter/certain-denial.ts";
import { type DecideOptions, rollsOver, ruleCountersOf } from "../../src/limiter/counters.ts";
import { dependsOnResponse } from "../../src/limiter/rule-cost.ts";
import { isExemptAddress } from "../../src/request/exempt-address.ts";
import { encodeValues, type RequestContext } from "../../src/request/identity.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import type { PathMatch } from "../../src/request/route-table.ts";
import { type AppliedClient, RememberedClient } from "./applied-client.ts";
import {
  firstValue,
  identityHash,
  type KeyValue,
  keyValuesOf,
  UNKNOWN_ADDRESS,
} from "./client-key.ts";
import { ClientTemplate } from "./client-template.ts";
import { clientText } from "./client-text.ts";
import type { LoggedRequest } from "./logged-request.ts";
import { requestCostOf } from "./request-cost.ts";

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

export interface ClientOptions {
  /** Returns a number from 0 to less than 1, to choose between shards. */
  readonly random: () => number;
  /** Whether clients without an address are one client, as in the Worker. Otherwise they are skipped. */
  readonly countsUnknownAddress: boolean;
  /** The maximum number of cached clients. */
  readonly maxClients: number;
}

/** The clients of a rule, or of one of its tiers. */
interface Tier {
  /** Undefined if a client's counters differ between requests, or in more than their keys. */
  readonly template: ClientTemplate | undefined;
  readonly clients: LruCache<RememberedClient>;
}

/** Turns the requests that one rule matches into counters. */
export class RuleClients {
  /** The number of requests that the rule does not count because their address is unknown. */
  withoutAddress = 0;
  /** The parts of the key whose values were used. */
  readonly usedParts = new Set<KeyPart>();
  readonly #rule: Rule;
  readonly #index: number;
  readonly #prefix: string;
  readonly #ipv6Prefix: number;
  readonly #options: ClientOptions;
  readonly #decideOptions: DecideOptions;
  readonly #readsAddress: boolean;
  readonly #tiers = new Map<readonly Window[], Tier>();
  /** Whether the address alone determines the counters. Most rules are so simple. */
  readonly isByAddress: boolean;

  constructor(
    rule: Rule,
    index: number,
    { prefix, ipv6Prefix }: Pick<Config, "prefix" | "ipv6Prefix">,
    options: ClientOptions,
  ) {
    const { exempt, key, match, tiers } = rule;
    this.#rule = rule;
    this.#index = index;
    this.#prefix = prefix;
    this.#ipv6Prefix = ipv6Prefix;
    this.#options = options;
    this.#decideOptions = { random: options.random };
    this.#readsAddress = match.ips !== undefined || match.except?.ips !== undefined;
    const hasAddress = key.length === 1 && key[0]?.[0]?.kind === "ip";
    const isUniform = this.#tierOf(rule.windows).template !== undefined;
    this.isByAddress = hasAddress && isUniform && !exempt && !tiers;
  }

  /**
   * Returns the counters of a request that the rule matches.
   *
   * @returns undefined if the request is exempt, or if its address is needed and unknown
   */
  apply({ path, params }: PathMatch, request: LoggedRequest): AppliedClient | undefined {
    const rule = this.#rule;
    if (rule.exempt && this.#isExempt(request)) return undefined;
    const context = { request, path, params, ipv6Prefix: this.#ipv6Prefix };
    const values = this.#valuesOf(context);
    if (!values) {
      this.withoutAddress++;
      return undefined;
    }
    const windows = rule.tiers ? windowsFor(rule, context) : rule.windows;
    const { template, clients } = this.#tierOf(windows);
    const encoded = encodeValues(values);
    const cached = template && clients.get(encoded);
    if (cached) return cached;
    const client = values.map(({ part, value }) => clientText(part, value)).join(", ");
    const isHashed = rule.spread || encoded.length > MAX_IDENTITY;
    const identity = isHashed ? identityHash(encoded) : encoded;
    if (template) {
      const remembered = new RememberedClient(template, client, identity);
      clients.set(encoded, remembered);
      return remembered;
    }
    const cost = requestCostOf(rule, windows, request);
    const appliedRule = { rule, windows, identity, ...(cost !== undefined && { cost }) };
    const ruleCounters = ruleCountersOf(appliedRule, this.#prefix, this.#decideOptions);
    return { rule: this.#index, client, appliedRule, ruleCounters };
  }

  #tierOf(windows: readonly Window[]): Tier {
    const existing = this.#tiers.get(windows);
    if (existing) return existing;
    const template = isUniform(this.#rule, windows)
      ? new ClientTemplate(this.#rule, this.#index, windows, this.#prefix)
      : undefined;
    const isDenied = template && certainTalliesOf(template.ruleCounters, 0);
    const tier: Tier = {
      template: isDenied ? undefined : template,
      clients: new LruCache(this.#options.maxClients),
    };
    this.#tiers.set(windows, tier);
    return tier;
  }

  #isExempt({ headers }: LoggedRequest): boolean {
    const { exempt } = this.#rule;
    if (!exempt) return false;
    if (isExemptAddress(exempt.networks, headers)) return true;
    // The value of a secret is unknown, and a note says so.
    return exempt.headers.some(({ name, value }) => headers.get(name) === value);
  }

  /** @returns undefined if the client's address is needed and unknown */
  #valuesOf(context: RequestContext): KeyValue[] | undefined {
    const { countsUnknownAddress } = this.#options;
    const isAddressed = context.request.headers.has("cf-connecting-ip");
    if (!isAddressed && this.#readsAddress && !countsUnknownAddress) return undefined;
    const values = keyValuesOf(this.#rule.key, context);
    for (const { part } of values) this.usedParts.add(part);
    return !countsUnknownAddress && values.some(isUnknownAddress) ? undefined : values;
  }
}

/** Whether the counters of all clients under these windows differ only in their keys, in all requests. */
function isUniform(rule: Rule, windows: readonly Window[]): boolean {
  const { banMs, cost, shards, spread } = rule;
  const hasConstantCost = typeof cost === "number" && !dependsOnResponse(rule);
  return hasConstantCost && shards === 1 && !spread && !banMs && !windows.some(rollsOver);
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

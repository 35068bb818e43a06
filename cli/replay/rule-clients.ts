import type { KeyPart } from "../../src/config/key-expression.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import {
  type DecideOptions,
  dependsOnResponse,
  rollsOver,
  ruleCountersOf,
} from "../../src/limiter/counters.ts";
import { encodeValues, type RequestContext } from "../../src/request/identity.ts";
import type { PathMatch } from "../../src/request/route-table.ts";
import { isExemptAddress } from "../../src/request/rule-applier.ts";
import { type AppliedClient, RememberedClient } from "./applied-client.ts";
import { ClientCache } from "./client-cache.ts";
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
import type { RowTable } from "./row-table.ts";

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

export interface ClientOptions {
  /** Returns a number from 0 to less than 1, to choose between shards. */
  readonly random: () => number;
  /** Whether clients without an address are one client, as in the Worker. Otherwise they are skipped. */
  readonly countsUnknownAddress: boolean;
  /** The maximum number of cached clients. */
  readonly maxClients: number;
  /** Has the rows of clients that are no longer cached; undefined if clients have no rows. */
  readonly rows: RowTable | undefined;
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
  /** Undefined if the counters of a client differ between requests, or in more than their keys. */
  readonly #template: ClientTemplate | undefined;
  readonly #clients: ClientCache;
  /** Whether the address alone determines the counters. Most rules are so simple. */
  readonly isByAddress: boolean;

  constructor(
    rule: Rule,
    index: number,
    { prefix, ipv6Prefix }: Pick<Config, "prefix" | "ipv6Prefix">,
    options: ClientOptions,
  ) {
    const { exempt, key, match } = rule;
    this.#rule = rule;
    this.#index = index;
    this.#prefix = prefix;
    this.#ipv6Prefix = ipv6Prefix;
    this.#options = options;
    this.#decideOptions = { random: options.random };
    this.#readsAddress = match.ips !== undefined || match.except?.ips !== undefined;
    this.#clients = new ClientCache(options.maxClients, (client) => this.#forget(client));
    if (isUniform(rule)) {
      const template = new ClientTemplate(rule, index, prefix);
      if (!certainTalliesOf(template.ruleCounters, 0)) this.#template = template;
    }
    const hasAddress = key.length === 1 && key[0]?.[0]?.kind === "ip";
    this.isByAddress = hasAddress && this.#template !== undefined && !exempt;
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
    const identity = this.#identityOf(values);
    if (this.#template) return this.#remember(this.#template, identity, values, request.at);
    const windows = rule.tiers ? windowsFor(rule, context) : rule.windows;
    const cost = requestCostOf(rule, windows, request);
    const appliedRule = { rule, windows, identity, ...(cost !== undefined && { cost }) };
    const ruleCounters = ruleCountersOf(appliedRule, this.#prefix, this.#decideOptions);
    return { rule: this.#index, client: textOf(values), appliedRule, ruleCounters };
  }

  #remember(
    template: ClientTemplate,
    identity: string,
    values: readonly KeyValue[],
    now: number,
  ): RememberedClient {
    const cached = this.#clients.get(identity);
    if (cached) return cached;
    const client = new RememberedClient(template, textOf(values), identity);
    this.#options.rows?.adopt(client, now);
    this.#clients.set(identity, client);
    return client;
  }

  #identityOf(values: readonly KeyValue[]): string {
    const encoded = encodeValues(values);
    const isHashed = this.#rule.spread || encoded.length > MAX_IDENTITY;
    return isHashed ? identityHash(encoded) : encoded;
  }

  #forget(client: RememberedClient): void {
    client.isForgotten = true;
    this.#options.rows?.store(client);
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

/**
 * Whether the counters of all clients differ only in their keys, in all requests. With tiers, they do not: a
 * client that changes its tier keeps its counters if the windows have the same length.
 */
function isUniform(rule: Rule): boolean {
  const { banMs, cost, shards, spread, tiers, windows } = rule;
  const hasConstantCost = typeof cost === "number" && !dependsOnResponse(rule);
  return hasConstantCost && shards === 1 && !spread && !banMs && !tiers && !windows.some(rollsOver);
}

function textOf(values: readonly KeyValue[]): string {
  return values.map(({ part, value }) => clientText(part, value)).join(", ");
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}

/** Returns the windows of a client's tier, as `windowsFor` of src/request/rule-applier.ts. */
function windowsFor(rule: Rule, context: RequestContext): readonly Window[] {
  const alternatives: readonly KeyPart[] = rule.tiers?.by[0] ?? [];
  const present = firstValue(alternatives, context);
  return (present && rule.tiers?.windows.get(present.value)) ?? rule.windows;
}

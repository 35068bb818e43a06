import type { KeyPart } from "../../src/config/key.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import {
  type DecideOptions,
  dependsOnResponse,
  rollsOver,
  ruleCountersOf,
} from "../../src/limiter/counters.ts";
import { bodyCostOf, hasCustomCost, unknownCost } from "../../src/request/custom-calls.ts";
import { encodeValues, type RequestContext } from "../../src/request/identity.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import type { RuleMatch } from "../../src/request/matcher.ts";
import type { PathMatch } from "../../src/request/route-table.ts";
import { isExemptAddress } from "../../src/request/rule-applier.ts";
import { sentNamesOf } from "../../src/request/sent-values.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import {
  absentKeyNote,
  absentKeyParts,
  preflightNote,
  type ReportNote,
  refusedNote,
  showsPreflights,
  withoutAddressNote,
} from "../logs/needs.ts";
import {
  type AppliedClient,
  ClientCache,
  ClientTemplate,
  clientText,
  firstValue,
  identityHash,
  type KeyValue,
  keyValuesOf,
  RememberedClient,
  UNKNOWN_ADDRESS,
} from "./clients.ts";
import { LoggedRequest } from "./logged-request.ts";
import type { ReplayOptions } from "./report.ts";
import { RouteCache, type RuleSet } from "./route.ts";
import type { RowTable } from "./row-table.ts";

/**
 * Returns the cost of a request that the request itself determines; undefined if it does not. A cost that a
 * function determines is unknown.
 */
function requestCostOf(
  rule: Rule,
  windows: readonly Window[],
  request: LoggedRequest,
): number | undefined {
  const { cost } = rule;
  if (typeof cost === "object" && hasCustomCost(rule)) return unknownCost(cost, 1);
  return bodyCostOf(rule, windows, request, () => {});
}

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

interface ClientOptions {
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
class RuleClients {
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

/** The number of cached addresses. They take about 15 MB. */
const MAX_ADDRESSES = 65_536;
const MAX_CACHED_LENGTH = 64;
/** The number of cached clients of all rules together. They take about 30 MB. */
const MAX_CLIENTS = 65_536;
const MIN_CLIENTS = 256;

/** The number of sets of rules that are cached for an address. */
const MAX_SETS = 4;

/** The clients of one address under rules for which the address determines the counters. */
interface AddressClients {
  readonly rules: RuleSet;
  readonly applied: readonly AppliedClient[];
}

/** Finds the rules and the counters of each request in a log, as the Worker does. */
export class LogRuleApplier {
  readonly #facts: LogFacts;
  readonly #request: LoggedRequest;
  readonly #routes: RouteCache;
  readonly #clients: ReadonlyMap<Rule, RuleClients>;
  readonly #addresses = new LruCache<readonly AddressClients[]>(MAX_ADDRESSES);
  /** The number of requests that the Worker refuses before it reads the rules. */
  refused = 0;

  /**
   * @param random returns a number from 0 to less than 1, to choose between shards
   * @param rows gets the rows of clients that are no longer cached; undefined if clients have no rows
   */
  constructor(
    config: Config,
    rules: readonly Rule[],
    facts: LogFacts,
    { missingAsAbsent = false }: ReplayOptions,
    random: () => number,
    rows?: RowTable,
  ) {
    const options = {
      random,
      rows,
      countsUnknownAddress: missingAsAbsent && !facts.ip,
      maxClients: Math.max(MIN_CLIENTS, Math.floor(MAX_CLIENTS / Math.max(1, rules.length))),
    };
    this.#clients = new Map(
      rules.map((rule, index) => [rule, new RuleClients(rule, index, config, options)]),
    );
    this.#facts = facts;
    const knowsPreflights = showsPreflights(facts);
    this.#request = new LoggedRequest(knowsPreflights, sentNamesOf(rules));
    this.#routes = new RouteCache(
      rules,
      config.caseSensitivePaths,
      knowsPreflights,
      this.#request,
      (rule) => this.#clients.get(rule)?.isByAddress === true,
    );
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  apply(request: LogRequest): readonly AppliedClient[] | undefined {
    const route = this.#routes.find(request);
    if (!route) {
      this.refused++;
      return undefined;
    }
    const { matches, byAddress } = route;
    if (!matches) return this.#applyAll(this.#routes.match());
    if (!byAddress || !isCacheable(request, this.#facts)) return this.#applyAll(matches);
    const known = this.#addresses.get(request.ip) ?? NO_CLIENTS;
    for (const each of known) {
      if (each.rules === byAddress && !each.applied.some(isForgotten)) return each.applied;
    }
    const applied = this.#applyAll(matches);
    // A request without a valid address is not cached, because each one is counted.
    if (applied.length < matches.length) return applied;
    const others = known.filter(({ rules }) => rules !== byAddress).slice(-MAX_SETS + 1);
    this.#addresses.set(request.ip, [...others, { rules: byAddress, applied }]);
    return applied;
  }

  #applyAll(matches: readonly RuleMatch[]): readonly AppliedClient[] {
    if (matches.length === 0) return NONE;
    const applied: AppliedClient[] = [];
    for (const match of matches) {
      const client = this.#clients.get(match.rule)?.apply(match, this.#request);
      if (client) applied.push(client);
    }
    return applied;
  }

  /** Returns what only the end of a replay shows. */
  notes(): ReportNote[] {
    const notes: ReportNote[] = [];
    const { assumedPreflights } = this.#routes;
    if (this.refused > 0) notes.push(refusedNote(this.refused));
    if (assumedPreflights > 0) notes.push(preflightNote(assumedPreflights));
    for (const [rule, { withoutAddress, usedParts }] of this.#clients) {
      if (withoutAddress > 0) notes.push(withoutAddressNote(rule, withoutAddress));
      const absent = absentKeyParts(rule.key, usedParts, this.#facts);
      notes.push(...absent.map((part) => absentKeyNote(rule, part)));
    }
    return notes;
  }
}

const NONE: readonly AppliedClient[] = [];
const NO_CLIENTS: readonly AddressClients[] = [];

/** Whether the clients of a request are the same for all requests of its address. */
function isCacheable(
  request: LogRequest,
  facts: LogFacts,
): request is LogRequest & { readonly ip: string } {
  const { ip } = request;
  if (ip === undefined || ip.length > MAX_CACHED_LENGTH) return false;
  // Workers of other zones share one address, and this field tells them apart.
  return !facts.headers.has("cf-worker") || !request.headers?.has("cf-worker");
}

function isForgotten(client: AppliedClient): boolean {
  return client instanceof RememberedClient && client.isForgotten;
}

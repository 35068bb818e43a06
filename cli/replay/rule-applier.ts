import type { KeyPart } from "../../src/config/key.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import { bodyCostOf, hasCustomCost, unknownCost } from "../../src/request/custom-calls.ts";
import { encodeValues, type RequestContext } from "../../src/request/identity.ts";
import type { RuleMatch } from "../../src/request/matcher.ts";
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
  ADDRESS,
  CanonicalAddresses,
  clientText,
  firstValue,
  identityHash,
  type KeyValue,
  keyValuesOf,
  UNKNOWN_ADDRESS,
} from "./clients.ts";
import type { AppliedClient } from "./groups.ts";
import { LoggedRequest } from "./logged-request.ts";
import { isPlainRule, PlainRule } from "./plain-rules.ts";
import { RouteCache } from "./route.ts";

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

interface ClientOptions {
  readonly prefix: string;
  readonly ipv6Prefix: number;
  /** Returns a number from 0 to less than 1, to choose between shards. */
  readonly random: () => number;
  /** Whether clients without an address are one client, as in the Worker. Otherwise they are skipped. */
  readonly countsUnknownAddress: boolean;
  readonly addresses: CanonicalAddresses;
}

/** Finds the client, and its counters, of the requests that one rule matches. */
class RuleClients {
  /** The number of requests that the rule does not count because their address is unknown. */
  withoutAddress = 0;
  /** The parts of the key whose values were used. */
  readonly usedParts = new Set<KeyPart>();
  readonly #rule: Rule;
  readonly #index: number;
  readonly #options: ClientOptions;
  /** Whether a condition reads the address. */
  readonly #readsAddress: boolean;
  /** Undefined if the rule is not plain. */
  readonly #plain: PlainRule | undefined;
  /** Whether the address alone identifies the clients of a plain rule, as in most rules. */
  readonly #isByAddress: boolean;

  constructor(rule: Rule, index: number, options: ClientOptions) {
    const { key, match } = rule;
    this.#rule = rule;
    this.#index = index;
    this.#options = options;
    this.#readsAddress = match.ips !== undefined || match.except?.ips !== undefined;
    this.#plain = isPlainRule(rule) ? new PlainRule(rule, index, options.prefix) : undefined;
    this.#isByAddress = key.length === 1 && key[0]?.[0]?.kind === "ip";
  }

  /** @returns undefined if the request is exempt, or if its address is needed and unknown */
  apply(match: RuleMatch, request: LoggedRequest): AppliedClient | undefined {
    if (this.#rule.exempt && this.#isExempt(request)) return undefined;
    const client =
      this.#isByAddress && this.#plain
        ? this.#clientOfAddress(this.#plain, request)
        : this.#clientOfValues(match, request);
    if (!client) this.withoutAddress++;
    return client;
  }

  #isExempt({ headers }: LoggedRequest): boolean {
    const { exempt } = this.#rule;
    if (!exempt) return false;
    if (isExemptAddress(exempt.networks, headers)) return true;
    // The value of a secret is unknown, and a note says so.
    return exempt.headers.some(({ name, value }) => headers.get(name) === value);
  }

  #clientOfAddress(plain: PlainRule, request: LoggedRequest): AppliedClient | undefined {
    const address = this.#options.addresses.of(request);
    const known = plain.get(address);
    if (known) return known;
    if (address === UNKNOWN_ADDRESS && !this.#options.countsUnknownAddress) return undefined;
    const text = clientText(ADDRESS, address);
    return plain.add(text, text, request.at);
  }

  #clientOfValues({ path, params }: RuleMatch, request: LoggedRequest): AppliedClient | undefined {
    const context = { request, path, params, ipv6Prefix: this.#options.ipv6Prefix };
    const values = this.#valuesOf(context);
    if (!values) return undefined;
    const rule = this.#rule;
    const identity = identityOf(rule, values);
    if (this.#plain) {
      const known = this.#plain.get(identity);
      return known ?? this.#plain.add(identity, textOf(values), request.at);
    }
    const windows = rule.tiers ? windowsFor(rule, context) : rule.windows;
    const cost = requestCostOf(rule, windows, request);
    const appliedRule = { rule, windows, identity, ...(cost !== undefined && { cost }) };
    const { prefix, random } = this.#options;
    const ruleCounters = ruleCountersOf(appliedRule, prefix, { random });
    const text = textOf(values);
    return { rule, index: this.#index, text, ruleCounters, keyedCounters: ruleCounters };
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
 * Returns an identity that distinguishes the clients of a rule. Only the windows of a rule with `start: "spread"`
 * depend on the identity that the Worker computes, which is a hash.
 */
function identityOf({ spread }: Rule, values: readonly KeyValue[]): string {
  const encoded = encodeValues(values);
  return spread || encoded.length > MAX_IDENTITY ? identityHash(encoded) : encoded;
}

function textOf(values: readonly KeyValue[]): string {
  return values.map(({ part, value }) => clientText(part, value)).join(", ");
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}

/** Returns the windows of a client's tier, as the Worker does. */
function windowsFor({ tiers, windows }: Rule, context: RequestContext): readonly Window[] {
  const present = firstValue(tiers?.by[0] ?? [], context);
  return (present && tiers?.windows.get(present.value)) ?? windows;
}

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

/**
 * Finds the rules and the counters of each request in a log. The Worker's applier (src/request/rule-applier.ts) returns
 * promises, because it hashes identities and verifies tokens, and it does not return the values that reports show.
 */
export class LogRuleApplier {
  readonly #facts: LogFacts;
  readonly #routes: RouteCache;
  readonly #clients: ReadonlyMap<Rule, RuleClients>;
  /** The number of requests that the Worker refuses before it reads the rules. */
  #refused = 0;

  /**
   * @param missingAsAbsent whether values that the log does not state are absent
   * @param random returns a number from 0 to less than 1, to choose between shards
   */
  constructor(
    { prefix, ipv6Prefix, caseSensitivePaths }: Config,
    rules: readonly Rule[],
    facts: LogFacts,
    missingAsAbsent: boolean,
    random: () => number,
  ) {
    const countsUnknownAddress = missingAsAbsent && !facts.ip;
    const addresses = new CanonicalAddresses(ipv6Prefix);
    const options = { prefix, ipv6Prefix, random, countsUnknownAddress, addresses };
    this.#clients = new Map(
      rules.map((rule, index) => [rule, new RuleClients(rule, index, options)]),
    );
    this.#facts = facts;
    const knowsPreflights = showsPreflights(facts);
    const request = new LoggedRequest(knowsPreflights, sentNamesOf(rules));
    this.#routes = new RouteCache(rules, caseSensitivePaths, knowsPreflights, request);
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  apply(request: LogRequest): readonly AppliedClient[] | undefined {
    const matches = this.#routes.matchesOf(request);
    if (!matches) {
      this.#refused++;
      return undefined;
    }
    const applied: AppliedClient[] = [];
    for (const match of matches) {
      const client = this.#clients.get(match.rule)?.apply(match, this.#routes.request);
      if (client) applied.push(client);
    }
    return applied;
  }

  /** Returns what only the end of a replay shows. */
  notes(): ReportNote[] {
    const notes: ReportNote[] = [];
    const { assumedPreflights } = this.#routes;
    if (this.#refused > 0) notes.push(refusedNote(this.#refused));
    if (assumedPreflights > 0) notes.push(preflightNote(assumedPreflights));
    for (const [rule, { withoutAddress, usedParts }] of this.#clients) {
      if (withoutAddress > 0) notes.push(withoutAddressNote(rule, withoutAddress));
      const absent = absentKeyParts(rule.key, usedParts, this.#facts);
      notes.push(...absent.map((part) => absentKeyNote(rule, part)));
    }
    return notes;
  }
}

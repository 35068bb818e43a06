import type { Rule, Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import { bodyCostOf, hasCustomCost, unknownCost } from "../../src/request/custom-calls.ts";
import type { RequestContext } from "../../src/request/identity.ts";
import type { RuleMatch } from "../../src/request/matcher.ts";
import { isExemptAddress } from "../../src/request/rule-applier.ts";
import { sentNamesOf } from "../../src/request/sent-values.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import {
  preflightNote,
  type ReportNote,
  refusedNote,
  showsPreflights,
  withoutAddressNote,
} from "../logs/needs.ts";
import { CanonicalAddresses, firstValue, RuleClients } from "./clients.ts";
import { type AppliedClient, added, NONE } from "./groups.ts";
import { LoggedRequest } from "./logged-request.ts";
import { PlainRule, plainRulesOf } from "./plain-rules.ts";
import { RouteCache, type RouteConfig } from "./route.ts";

type LogConfig = Pick<Config, "ipv6Prefix"> & RouteConfig;

/** Finds the rules that match the requests of a log, and their clients, with the code of the Worker. */
export class LogRules {
  readonly #routes: RouteCache;
  readonly #clients: ReadonlyMap<Rule, RuleClients>;
  /** The number of requests that the Worker refuses before it reads the rules. */
  #refused = 0;

  /** @param missingAsAbsent whether values that the log does not state count as absent */
  constructor(
    config: LogConfig,
    rules: readonly Rule[],
    facts: LogFacts,
    missingAsAbsent: boolean,
  ) {
    const { ipv6Prefix } = config;
    const countsUnknownAddress = missingAsAbsent && !facts.has("ip");
    const addresses = new CanonicalAddresses(ipv6Prefix);
    const options = { ipv6Prefix, countsUnknownAddress, addresses };
    this.#clients = new Map(rules.map((rule) => [rule, new RuleClients(rule, options)]));
    const knowsPreflights = showsPreflights(facts);
    const request = new LoggedRequest(knowsPreflights, sentNamesOf(rules));
    this.#routes = new RouteCache(rules, config, knowsPreflights, request);
  }

  /** The request that was looked up last, in the form that rules read. */
  get request(): LoggedRequest {
    return this.#routes.request;
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  matchesOf(request: LogRequest): readonly RuleMatch[] | undefined {
    const matches = this.#routes.matchesOf(request);
    if (!matches) this.#refused++;
    return matches;
  }

  clientsOf(rule: Rule): RuleClients {
    return this.#clients.get(rule) as RuleClients;
  }

  /**
   * Returns the notes that only the end of a log shows.
   *
   * @param fate the report's treatment of refused requests, as the end of a sentence
   */
  notes(fate?: string): ReportNote[] {
    const notes: ReportNote[] = [];
    const { assumedPreflights } = this.#routes;
    if (this.#refused > 0) notes.push(refusedNote(this.#refused, fate));
    if (assumedPreflights > 0) notes.push(preflightNote(assumedPreflights));
    for (const [rule, { withoutAddress }] of this.#clients) {
      if (withoutAddress > 0) notes.push(withoutAddressNote(rule, withoutAddress));
    }
    return notes;
  }
}

/**
 * Finds the counters of each request in a log. The Worker's applier (src/request/rule-applier.ts) returns promises,
 * because it hashes identities and verifies tokens, and it does not return the values that reports show.
 */
export class LogRuleApplier {
  readonly rules: LogRules;
  readonly #prefix: string;
  readonly #ipv6Prefix: number;
  readonly #indexes: ReadonlyMap<Rule, number>;
  readonly #plain: ReadonlyMap<Rule, PlainRule>;
  readonly #random: () => number;

  /**
   * @param missingAsAbsent whether values that the log does not state count as absent
   * @param random returns a number from 0 to less than 1, to choose between shards
   */
  constructor(
    config: Config,
    rules: readonly Rule[],
    facts: LogFacts,
    missingAsAbsent: boolean,
    random: () => number,
  ) {
    const { prefix, ipv6Prefix } = config;
    this.rules = new LogRules(config, rules, facts, missingAsAbsent);
    this.#prefix = prefix;
    this.#ipv6Prefix = ipv6Prefix;
    this.#random = random;
    this.#indexes = new Map(rules.map((rule, index) => [rule, index]));
    this.#plain = new Map(
      plainRulesOf(rules).map((rule) => [rule, new PlainRule(rule, rules.indexOf(rule), prefix)]),
    );
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  apply(request: LogRequest): readonly AppliedClient[] | undefined {
    const matches = this.rules.matchesOf(request);
    if (!matches) return undefined;
    let applied: AppliedClient[] = NONE;
    for (const match of matches) {
      const client = this.#clientOf(match, request.at);
      if (client) applied = added(applied, client);
    }
    return applied;
  }

  /** @returns undefined if the request is exempt, or if the rule needs its address and the address is unknown */
  #clientOf(match: RuleMatch, at: number): AppliedClient | undefined {
    const { rule, path, params } = match;
    const { request } = this.rules;
    if (isExempt(rule, request)) return undefined;
    const clients = this.rules.clientsOf(rule);
    const identity = clients.identityOf(match, request);
    if (identity === undefined) return undefined;
    const plain = this.#plain.get(rule);
    if (plain) return plain.get(identity) ?? plain.add(identity, clients.shown(), at);
    const context = { request, path, params, ipv6Prefix: this.#ipv6Prefix };
    const windows = rule.tiers ? windowsFor(rule, context) : rule.windows;
    // If `concurrent` is left out, a client may have no limit.
    if (windows.length === 0) return undefined;
    const cost = requestCostOf(rule, windows, request);
    const appliedRule = { rule, windows, identity, ...(cost !== undefined && { cost }) };
    const ruleCounters = ruleCountersOf(appliedRule, this.#prefix, {
      random: this.#random,
    });
    const index = this.#indexes.get(rule) as number;
    return { rule, index, text: clients.shown(), ruleCounters, keyedCounters: ruleCounters };
  }
}

const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2;

/**
 * Returns a substitute for random numbers: multiples of the golden ratio, which choose all shards about equally
 * often.
 */
export function evenShares(): () => number {
  let share = 0;
  return () => {
    share = (share + GOLDEN_RATIO) % 1;
    return share;
  };
}

function isExempt({ exempt }: Rule, { headers }: LoggedRequest): boolean {
  if (!exempt) return false;
  if (isExemptAddress(exempt.networks, headers)) return true;
  // The value of a secret is unknown, and a note says so.
  return exempt.headers.some(({ name, value }) => headers.get(name) === value);
}

/** Returns the windows of a client's tier, as the Worker does. */
function windowsFor({ tiers, windows }: Rule, context: RequestContext): readonly Window[] {
  const present = firstValue(tiers?.by[0] ?? [], context);
  return (present && tiers?.windows.get(present.value)) ?? windows;
}

/**
 * Returns a cost that depends only on the request; undefined if the response determines it. A cost that a function
 * computes is unknown.
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

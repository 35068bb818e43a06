import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import type { RuleMatch } from "../../src/request/matcher.ts";
import { sentNamesOf } from "../../src/request/sent-values.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import { type AppliedClient, RememberedClient } from "./applied-client.ts";
import { showsPreflights } from "./known-facts.ts";
import {
  absentKeyNote,
  absentKeyParts,
  preflightNote,
  refusedNote,
  withoutAddressNote,
} from "./later-notes.ts";
import { LoggedRequest } from "./logged-request.ts";
import type { ReplayNote, ReplayOptions } from "./replay-engine.ts";
import type { RuleSet } from "./route.ts";
import { RouteCache } from "./route-cache.ts";
import type { RowTable } from "./row-table.ts";
import { RuleClients } from "./rule-clients.ts";

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
    if (!byAddress || !isCacheable(request)) return this.#applyAll(matches);
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

  /** Adds requests that were decided without `apply`. */
  addCounts({ refused, assumedPreflights }: { refused: number; assumedPreflights: number }): void {
    this.refused += refused;
    this.#routes.assumedPreflights += assumedPreflights;
  }

  /** Returns what only the end of a replay shows. */
  notes(): ReplayNote[] {
    const notes: ReplayNote[] = [];
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
function isCacheable(request: LogRequest): request is LogRequest & { readonly ip: string } {
  const { ip, headers } = request;
  if (ip === undefined || ip.length > MAX_CACHED_LENGTH) return false;
  // Workers of other zones share one address, and this field tells them apart.
  return !headers?.has("cf-worker");
}

function isForgotten(client: AppliedClient): boolean {
  return client instanceof RememberedClient && client.isForgotten;
}

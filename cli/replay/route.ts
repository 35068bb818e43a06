import type { Rule } from "../../src/config/rule.ts";
import { type Place, placeOf } from "../../src/request/canonical-request.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import {
  createMatcher,
  type Matcher,
  matchesHost,
  matchesMethod,
  type RuleMatch,
} from "../../src/request/matcher.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { type LoggedRequest, urlOf } from "./logged-request.ts";
import { matchesByPlace, readsPath } from "./rule-reads.ts";

/** A path may have 75 variants, and may match hundreds of rules. Such routes are not cached. */
const MAX_CACHED_VARIANTS = 4;
const MAX_CACHED_RULES = 16;

/** The method and the host of requests. */
interface Source {
  readonly method: string;
  readonly host: string | undefined;
  /** The route of all short paths, if no rule for this method and host reads the path. */
  readonly anyPath: Route | undefined;
}

/** What one path means under one method and host. */
interface Route {
  readonly source: Source;
  /** Undefined if the host or the path is unclear, or if the path is too long. */
  readonly place: Place | undefined;
  /** Undefined if the matching rules depend on more than host, method and path. */
  readonly matches: readonly RuleMatch[] | undefined;
  /**
   * The matching rules, if the client's address determines the counters of all of them. Routes with the same
   * rules have the same object.
   */
  readonly byAddress: RuleSet | undefined;
  /** Whether the request counts as a preflight because the log does not show whether it is one. */
  readonly isAssumedPreflight: boolean;
}

/** Rules, in the order of the configuration. */
export type RuleSet = readonly Rule[];

/** The route of requests that the Worker refuses before it reads the rules. */
const REFUSED = {
  place: undefined,
  matches: [],
  byAddress: undefined,
  isAssumedPreflight: false,
} as const;

/** Whether a route takes little memory. */
function isSmall({ place, matches = [] }: Route): boolean {
  const variants = place ? place.variants.length + place.unstrippedVariants.length : 0;
  return variants <= MAX_CACHED_VARIANTS && matches.length <= MAX_CACHED_RULES;
}

/** The number of cached pairs of a method and a host. */
const CACHED_SOURCES = 256;
/** The number of cached sets of rules. More could exist only with many rules. */
const CACHED_RULE_SETS = 4096;
/** The number of cached paths. They take at most 50 MB, and usually 5 MB. */
const CACHED_PATHS = 8192;
const MAX_CACHED_LENGTH = 512;
/** The number of methods and hosts that are cached for a path. */
const CACHED_SOURCES_OF_PATH = 4;
/** No path up to this length, in characters, is too long for the Worker. */
const NEVER_TOO_LONG = 128;

/** Finds the rules that match the requests of a log. */
export class RouteCache {
  readonly #rules: readonly Rule[];
  readonly #match: Matcher;
  readonly #caseSensitivePaths: boolean;
  readonly #request: LoggedRequest;
  readonly #isByAddress: (rule: Rule) => boolean;
  readonly #ruleSets = new LruCache<RuleSet>(CACHED_RULE_SETS);
  readonly #showsPreflights: boolean;
  /** Whether the conditions of all rules depend only on host, method and path. */
  readonly #isCacheable: boolean;
  readonly #sources = new LruCache<Source>(CACHED_SOURCES);
  #lastSource: Source | undefined;
  readonly #routes = new LruCache<Route[]>(CACHED_PATHS);
  /** The number of OPTIONS requests that count as preflights because the log does not show more. */
  assumedPreflights = 0;

  /**
   * @param showsPreflights whether the log shows which OPTIONS requests are preflights
   * @param request is set to each request that is looked up
   * @param isByAddress whether the client's address determines the counters of a rule
   */
  constructor(
    rules: readonly Rule[],
    caseSensitivePaths: boolean,
    showsPreflights: boolean,
    request: LoggedRequest,
    isByAddress: (rule: Rule) => boolean = () => false,
  ) {
    this.#rules = rules;
    this.#match = createMatcher(rules, caseSensitivePaths);
    this.#caseSensitivePaths = caseSensitivePaths;
    this.#request = request;
    this.#showsPreflights = showsPreflights;
    this.#isByAddress = isByAddress;
    this.#isCacheable = rules.every(matchesByPlace);
  }

  /**
   * Finds the route of a request, and sets the request.
   *
   * @returns undefined if the Worker refuses the request before it reads the rules
   */
  find(request: LogRequest): Route | undefined {
    const source = this.#sourceOf(request);
    const isShort = request.target.length <= NEVER_TOO_LONG;
    const route = (isShort && source.anyPath) || this.#routeOf(request, source);
    if (!route.place) return undefined;
    this.#request.set(request, route.place);
    if (route.isAssumedPreflight) this.assumedPreflights++;
    return route;
  }

  /**
   * Returns the rules of all short paths, for the method and the host of a request; undefined if a rule reads the
   * path of such requests.
   */
  matchesOfAnyPath(request: LogRequest): readonly RuleMatch[] | undefined {
    return this.#sourceOf(request).anyPath?.matches;
  }

  /** Returns the rules that match the request that was found last. */
  match(): readonly RuleMatch[] {
    return this.#match(this.#request);
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  matchesOf(request: LogRequest): readonly RuleMatch[] | undefined {
    const route = this.find(request);
    return route && (route.matches ?? this.match());
  }

  #sourceOf(request: LogRequest): Source {
    const { method, host } = request;
    const last = this.#lastSource;
    if (last && last.method === method && last.host === host) return last;
    const key = `${method} ${host ?? "?"}`;
    const source = this.#sources.get(key) ?? this.#createSource(request);
    this.#sources.set(key, source);
    this.#lastSource = source;
    return source;
  }

  #createSource(request: LogRequest): Source {
    const { method, host } = request;
    const source: Source = { method, host, anyPath: undefined };
    if (!this.#isCacheable) return source;
    const anyPath = this.#createRoute(request, source, "/");
    const readsNoPath = this.#rules.every((rule) => {
      const isOfSource =
        matchesHost(rule.match, this.#request) && matchesMethod(rule.match, this.#request);
      return !isOfSource || !readsPath(rule);
    });
    return anyPath.place && anyPath.matches && readsNoPath ? { ...source, anyPath } : source;
  }

  #routeOf(request: LogRequest, source: Source): Route {
    const path = pathOf(request.target);
    if (path.length > MAX_CACHED_LENGTH) return this.#createRoute(request, source, path);
    const routes = this.#routes.get(path);
    for (const route of routes ?? []) if (route.source === source) return route;
    const route = this.#createRoute(request, source, path);
    if (!isSmall(route)) return route;
    if (!routes) this.#routes.set(path, [route]);
    else if (routes.length < CACHED_SOURCES_OF_PATH) routes.push(route);
    else routes[0] = route;
    return route;
  }

  /** Sets the request too. */
  #createRoute(request: LogRequest, source: Source, path: string): Route {
    const place = placeOf(urlOf(source.host, path), this.#caseSensitivePaths);
    if (!place) return { ...REFUSED, source };
    this.#request.set(request, place);
    const isOptions = this.#request.sentMethod === "OPTIONS";
    const isCacheable = this.#isCacheable && !(isOptions && this.#showsPreflights);
    const matches = isCacheable ? this.#match(this.#request) : undefined;
    const byAddress = matches && this.#ruleSetOf(matches);
    const isAssumedPreflight = isOptions && !this.#showsPreflights;
    return { source, place, matches, byAddress, isAssumedPreflight };
  }

  #ruleSetOf(matches: readonly RuleMatch[]): RuleSet | undefined {
    const rules = matches.map(({ rule }) => rule);
    if (rules.length === 0 || !rules.every(this.#isByAddress)) return undefined;
    const key = rules.map(({ name }) => name).join();
    const known = this.#ruleSets.get(key) ?? rules;
    this.#ruleSets.set(key, known);
    return known;
  }
}

/** Returns the path of a target, without its query. */
function pathOf(target: string): string {
  const queryIndex = target.indexOf("?");
  return queryIndex === -1 ? target : target.slice(0, queryIndex);
}

import type { Rule } from "../../src/config/rule.ts";
import { type Place, placeOf } from "../../src/request/canonical-request.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import { createMatcher, type Matcher, type RuleMatch } from "../../src/request/matcher.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { type LoggedRequest, urlOf } from "./logged-request.ts";

/** What one path means under one method and host. */
interface Route {
  readonly place: Place;
  /** Undefined if the matching rules depend on more than host, method and path. */
  readonly matches: readonly RuleMatch[] | undefined;
  /** Whether the request counts as a preflight because the log does not show whether it is one. */
  readonly isAssumedPreflight: boolean;
}

/** A path may have 75 variants, and may match hundreds of rules. Such routes are not cached. */
const MAX_CACHED_VARIANTS = 4;
const MAX_CACHED_RULES = 16;
/** The maximum number of cached routes. They take at most 50 MB, and usually 5 MB. */
const CACHED_ROUTES = 8192;
/** The longest key of a cached route, in characters. */
const MAX_CACHED_LENGTH = 512;

/** Finds the rules that match the requests of a log, with the matcher of the Worker. */
export class RouteCache {
  /** The request that was looked up last. */
  readonly request: LoggedRequest;
  readonly #match: Matcher;
  readonly #caseSensitivePaths: boolean;
  readonly #showsPreflights: boolean;
  /** Whether the conditions of all rules depend only on host, method and path. */
  readonly #isCacheable: boolean;
  readonly #routes = new LruCache<Route>(CACHED_ROUTES);
  /** The number of OPTIONS requests that count as preflights because the log does not show more. */
  assumedPreflights = 0;

  /**
   * @param showsPreflights whether the log shows which OPTIONS requests are preflights
   * @param request is set to each request that is looked up
   */
  constructor(
    rules: readonly Rule[],
    caseSensitivePaths: boolean,
    showsPreflights: boolean,
    request: LoggedRequest,
  ) {
    this.request = request;
    this.#match = createMatcher(rules, caseSensitivePaths);
    this.#caseSensitivePaths = caseSensitivePaths;
    this.#showsPreflights = showsPreflights;
    this.#isCacheable = rules.every(matchesByPlace);
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  matchesOf(request: LogRequest): readonly RuleMatch[] | undefined {
    const { method, host, target } = request;
    const query = target.indexOf("?");
    const path = query === -1 ? target : target.slice(0, query);
    const key = `${method} ${host ?? ""}${path}`;
    const route = this.#routes.get(key) ?? this.#createRoute(request, path, key);
    if (!route) return undefined;
    this.request.set(request, route.place);
    if (route.isAssumedPreflight) this.assumedPreflights++;
    return route.matches ?? this.#match(this.request);
  }

  #createRoute(request: LogRequest, path: string, key: string): Route | undefined {
    const place = placeOf(urlOf(request.host, path), this.#caseSensitivePaths);
    if (!place) return undefined;
    this.request.set(request, place);
    const isOptions = this.request.sentMethod === "OPTIONS";
    const isCacheable = this.#isCacheable && !(isOptions && this.#showsPreflights);
    const matches = isCacheable ? this.#match(this.request) : undefined;
    const route = { place, matches, isAssumedPreflight: isOptions && !this.#showsPreflights };
    if (key.length <= MAX_CACHED_LENGTH && isSmall(route)) this.#routes.set(key, route);
    return route;
  }
}

/** Whether a route takes little memory. */
function isSmall({ place, matches = [] }: Route): boolean {
  const variants = place.variants.length + place.unstrippedVariants.length;
  return variants <= MAX_CACHED_VARIANTS && matches.length <= MAX_CACHED_RULES;
}

/** Whether the conditions of a rule read only the host, the method and the path of a request. */
function matchesByPlace({ match }: Rule): boolean {
  const { except, ...conditions } = match;
  return [conditions, except ?? {}].every(({ headers, query, ips, countries, asns, bots }) =>
    [headers, query, ips, countries, asns, bots].every((each) => each === undefined),
  );
}

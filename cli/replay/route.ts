import type { Conditions } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { type Place, placeOf, readsOwnQuotas } from "../../src/request/canonical-request.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import { createMatcher, type Matcher, type RuleMatch } from "../../src/request/matcher.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { type LoggedRequest, urlOf } from "./logged-request.ts";

export type RouteConfig = Pick<Config, "caseSensitivePaths" | "quotaPath">;

/** The rules that match one path, for one method and host. */
interface Route {
  readonly place: Place;
  /** Undefined if the matching rules depend on more than host, method and path. */
  readonly matches: readonly RuleMatch[] | undefined;
  /** Whether a request counts as a preflight only because the log does not show its kind. */
  readonly isAssumedPreflight: boolean;
}

interface Source {
  readonly method: string;
  readonly host: string | undefined;
  /** The routes of paths. */
  readonly routes: LruCache<Route>;
  /** The route of all short paths, if no rule for this method reads the path. */
  readonly anyPath: Route | undefined;
}

/** Larger routes are not cached: a path may have 75 variants, and match hundreds of rules. */
const MAX_CACHED_VARIANTS = 4;
const MAX_CACHED_RULES = 16;
/** The maximum number of cached routes for each method and host. They usually take 2 MB. */
const CACHED_ROUTES = 4096;
const CACHED_SOURCES = 32;
/** The longest path of a cached route, in characters. */
const MAX_CACHED_LENGTH = 256;
/** The Worker accepts every path up to this length, in characters. */
const NEVER_TOO_LONG = 128;

/** Finds the rules that match the requests of a log, with the matcher of the Worker. */
export class RouteCache {
  /** The request that was looked up last. */
  readonly request: LoggedRequest;
  readonly #rules: readonly Rule[];
  readonly #match: Matcher;
  readonly #config: RouteConfig;
  readonly #showsPreflights: boolean;
  /** Whether the conditions of all rules depend only on host, method and path. */
  readonly #isCacheable: boolean;
  readonly #sources = new LruCache<Source>(CACHED_SOURCES);
  #lastSource: Source | undefined;
  /** The number of OPTIONS requests that count as preflights because the log does not show their kind. */
  assumedPreflights = 0;

  /**
   * @param showsPreflights whether the log shows which OPTIONS requests are preflights
   * @param request is set to each request that is looked up
   */
  constructor(
    rules: readonly Rule[],
    config: RouteConfig,
    showsPreflights: boolean,
    request: LoggedRequest,
  ) {
    this.request = request;
    this.#rules = rules;
    this.#match = createMatcher(rules, config.caseSensitivePaths);
    this.#config = config;
    this.#showsPreflights = showsPreflights;
    this.#isCacheable = rules.every(matchesByPlace);
  }

  /** @returns undefined if the Worker refuses the request before it reads the rules */
  matchesOf(request: LogRequest): readonly RuleMatch[] | undefined {
    const source = this.#sourceOf(request);
    const isShort = request.target.length <= NEVER_TOO_LONG;
    const route = (isShort && source.anyPath) || this.#routeOf(request, source);
    if (!route) return undefined;
    this.request.set(request, route.place);
    if (route.isAssumedPreflight) this.assumedPreflights++;
    return route.matches ?? this.#match(this.request);
  }

  #sourceOf(request: LogRequest): Source {
    const { method, host } = request;
    const last = this.#lastSource;
    if (last && last.method === method && last.host === host) return last;
    const key = `${method} ${host ?? ""}`;
    const source = this.#sources.get(key) ?? this.#createSource(request);
    this.#sources.set(key, source);
    this.#lastSource = source;
    return source;
  }

  #createSource(request: LogRequest): Source {
    const route = this.#createRoute(request, "/");
    const { method: name, sentMethod } = this.request;
    const mayMatch = ({ match: { methods } }: Rule) =>
      !methods || methods.includes(name) || methods.includes(sentMethod);
    const isAnyPath =
      this.#config.quotaPath === undefined &&
      route?.matches &&
      !this.#rules.some((rule) => readsPath(rule) && mayMatch(rule));
    const { method, host } = request;
    const routes = new LruCache<Route>(CACHED_ROUTES);
    return { method, host, routes, anyPath: isAnyPath ? route : undefined };
  }

  #routeOf(request: LogRequest, { routes }: Source): Route | undefined {
    const query = request.target.indexOf("?");
    const path = query === -1 ? request.target : request.target.slice(0, query);
    const known = routes.get(path);
    if (known) return known;
    const route = this.#createRoute(request, path);
    if (route && path.length <= MAX_CACHED_LENGTH && isSmall(route)) routes.set(path, route);
    return route;
  }

  /** Also sets `request`. @returns undefined if the Worker refuses the request before it reads the rules */
  #createRoute(request: LogRequest, path: string): Route | undefined {
    const place = placeOf(urlOf(request.host, path), this.#config.caseSensitivePaths);
    if (!place) return undefined;
    this.request.set(request, place);
    if (readsOwnQuotas(this.request, this.#config)) {
      return { place, matches: [], isAssumedPreflight: false };
    }
    const isOptions = this.request.sentMethod === "OPTIONS";
    const isCacheable = this.#isCacheable && !(isOptions && this.#showsPreflights);
    const matches = isCacheable ? this.#match(this.request) : undefined;
    return { place, matches, isAssumedPreflight: isOptions && !this.#showsPreflights };
  }
}

function isSmall({ place, matches = [] }: Route): boolean {
  const variants = place.variants.length + place.unstrippedVariants.length;
  return variants <= MAX_CACHED_VARIANTS && matches.length <= MAX_CACHED_RULES;
}

/** Whether the conditions of a rule read only the host, the method and the path of a request. */
function matchesByPlace(rule: Rule): boolean {
  return conditionsOf(rule).every(({ hosts, methods, paths, ...others }) =>
    Object.values(others).every((each) => each === undefined),
  );
}

/** Whether a rule reads the path of a request. */
function readsPath(rule: Rule): boolean {
  const parts = [...rule.key, ...(rule.tiers?.by ?? [])].flat();
  return (
    conditionsOf(rule).some(({ paths }) => paths !== undefined) ||
    parts.some(({ kind }) => kind === "path" || kind === "param")
  );
}

function conditionsOf({ match: { except, ...match } }: Rule): Conditions[] {
  return except ? [match, except] : [match];
}

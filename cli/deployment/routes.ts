import { type Conditions, splitRoute } from "../../src/config/match.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import { type Deployment, placeOf, type Route } from "./deployment.ts";
import { settingIn } from "./wrangler-file.ts";

interface Pattern {
  /** In lower case. A `*` at the start matches any text, even an empty text. */
  readonly host: string;
  /** With the leading slash. A `*` at the end matches any text, even an empty text. */
  readonly path: string;
}

/** Returns the pattern of a route. A custom domain matches all paths of its host. */
export function patternOf({ pattern, customDomain }: Route): Pattern {
  const [, host = "", path = ""] = /^(?:\*?https?:\/\/)?([^/]*)(\/.*)?$/.exec(pattern) ?? [];
  if (customDomain || (path === "" && host.endsWith("*")))
    return { host: host.toLowerCase().replace(/(?<=.)\*$/, ""), path: "/*" };
  return { host: host.toLowerCase(), path: path || "/" };
}

/** Findings about routes that miss requests, or that match too many requests. */
export function* routeFindings(
  { rules, quotaPath }: Config,
  { routes }: Deployment,
): Iterable<LocalFinding> {
  const patterns = routes.map(patternOf);
  for (const [index, { host, path }] of patterns.entries()) {
    const pattern = routes[index]?.pattern;
    if (path !== "/*") {
      yield found(
        "route-by-path",
        "routes",
        `${pattern} compares the path as it is written, with its case and its query: a path that is spelt differently reaches the origin without Weir`,
        `Route ${host}/*, and select the paths in the rules`,
      );
    }
    if (/^\*[^.]/.test(host)) {
      yield found(
        "route-any-prefix",
        "routes",
        `${pattern} also matches other hosts with the same ending, such as my${host.slice(1)}`,
        `Write two routes, ${host.slice(1)}/* and *.${host.slice(1)}/*`,
      );
    }
  }
  if (routes.length === 0) return;
  if (quotaPath !== undefined && missedRequest({ paths: [quotaPath] }, patterns) !== undefined) {
    const message = `Requests for quotaPath, ${quotaPath}, reach the origin without Weir`;
    yield found("route-misses-rule", "routes", message, routeCure(undefined, routes));
  }
  for (const { name, match, for: audience } of rules) {
    const missed = audience === "programs" ? undefined : missedRequest(match, patterns);
    if (missed === undefined) continue;
    yield found(
      "route-misses-rule",
      "routes",
      `The rule "${name}" matches requests that reach the origin without Weir, such as ${missed.request}`,
      routeCure(missed.host, routes),
    );
  }
}

/**
 * Says which route is missing.
 *
 * @param host the host of a rule that no route covers; undefined if the routes cover only some paths of their hosts
 */
function routeCure(host: string | undefined, routes: readonly Route[]): string {
  const hosts = new Set(routes.map((route) => patternOf(route).host));
  if (host === undefined || hosts.has(host)) {
    const whole = host === undefined ? [...hosts] : [host];
    return `Route the whole host: ${whole.map((each) => `${each}/*`).join(", ")}`;
  }
  return routes.every(({ customDomain }) => customDomain) && !host.startsWith("*")
    ? `Add ${host} as a custom domain`
    : `Add the route ${host}/*`;
}

/** A request that no route matches, and the host of the rule that allows it; undefined if the rule names no host. */
interface Missed {
  readonly request: string;
  readonly host: string | undefined;
}

/** Returns a request that the conditions allow but no route matches; undefined if there is none. */
function missedRequest(match: Conditions, patterns: readonly Pattern[]): Missed | undefined {
  const paths = match.paths?.flatMap(samplePaths) ?? [undefined];
  for (const host of match.hosts ?? [undefined]) {
    const sample = host?.replace(/^\*/, "any");
    const path = paths.find((each) => !patterns.some((pattern) => covers(pattern, sample, each)));
    const isMissed =
      path !== undefined || !patterns.some((each) => covers(each, sample, undefined));
    if (isMissed) return { request: `${sample ?? ""}${path ?? ""}`, host };
  }
  return undefined;
}

/** Whether a route matches a host and a path. An undefined host or path matches every route. */
function covers(pattern: Pattern, host: string | undefined, path: string | undefined): boolean {
  const onHost =
    host === undefined ||
    (pattern.host.startsWith("*") ? host.endsWith(pattern.host.slice(1)) : host === pattern.host);
  const onPath =
    path === undefined ||
    (pattern.path.endsWith("*")
      ? path.startsWith(pattern.path.slice(0, -1))
      : path === pattern.path);
  return onHost && onPath;
}

/** Sample paths that match a path of a rule. `/v1/*` gives `/v1`, `/v1/0` and `/v1/0/0`. */
function samplePaths(route: string): string[] {
  const segments = splitRoute(route);
  const last = segments.at(-1) ?? "";
  const whole = segments.map((segment) =>
    /^[:*]/.test(segment) ? "0" : segment.replace(/^\//, ""),
  );
  const without = whole.slice(0, -1);
  const samples = last === "*" ? [without, whole, [...whole, "0"]] : [whole];
  return [...(last.endsWith("?") ? [without] : []), ...samples].map((each) => `/${each.join("/")}`);
}

/**
 * Warns of a route that another environment has too. Cloudflare gives a route to one Worker only, and
 * each environment is a Worker of its own.
 *
 * @param others the environments that this one is compared with
 */
export function* sameRouteWarnings(
  _config: Config,
  { file, routes }: Deployment,
  others: readonly Deployment[],
): Iterable<LocalFinding> {
  const textOf = (route: Route) => Object.values(patternOf(route)).join("");
  const own = new Set(routes.map(textOf));
  for (const other of others) {
    const shared = other.routes.find((route) => own.has(textOf(route)));
    if (!shared) continue;
    yield found(
      "same-route",
      "routes",
      `${shared.pattern} also belongs to ${placeOf(other)}. Only one of the two Workers can have it, and environments inherit routes`,
      `Write other routes here, or ${settingIn(file, "routes", [])}`,
    );
    return;
  }
}

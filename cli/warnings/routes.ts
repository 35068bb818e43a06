import type { Config } from "../../src/config/schema.ts";
import type { Deployment, Route } from "../load-wrangler.ts";
import { pathsOf } from "./samples.ts";
import type { Warning } from "./warning.ts";

/** A route's pattern, taken apart. */
interface Pattern {
  /** In lower case; `*` may stand at its start, for anything or nothing. */
  readonly host: string;
  /** With the slash; `*` may stand at its end, for anything or nothing. */
  readonly path: string;
}

/** What routes leave out that a rule is about, or take in that they should not. */
export function routeWarnings({ rules }: Config, { routes, place }: Deployment): Warning[] {
  if (routes.length === 0) return [];
  const where = place("routes");
  const patterns = routes.map(patternOf);
  const warnings: Warning[] = routes.flatMap((route, index) => {
    const { host, path } = patterns[index] as Pattern;
    return [
      path !== "/*" && {
        code: "route-by-path",
        where,
        what: `${route.pattern} goes by the path as it is written, with its case and its query: what is spelt otherwise reaches the origin without Weir`,
        advice: `Route ${host}/*, and leave it to rules which paths they are about`,
      },
      /^\*[^.]/.test(host) && {
        code: "route-any-prefix",
        where,
        what: `${route.pattern} is also about hosts that only end so, such as my${host.slice(1)}`,
        advice: `Write two routes, ${host.slice(1)}/* and *.${host.slice(1)}/*`,
      },
    ].filter((warning) => warning !== false);
  });

  for (const { name, match } of rules) {
    const hosts = match.hosts?.map((host) => host.replace(/^\*/, "any")) ?? [undefined];
    const missed = hosts.flatMap((host) =>
      (match.paths ? pathsOf(match) : [undefined])
        .filter((path) => !patterns.some((pattern) => covers(pattern, host, path)))
        .map((path) => `${host ?? ""}${path ?? ""}`),
    );
    if (missed.length === 0) continue;
    warnings.push({
      code: "route-misses-rule",
      where,
      what: `The rule "${name}" is about requests that reach the origin without Weir, such as ${missed[0]}`,
      advice: "Add a route for the whole host, such as api.example.com/*",
    });
  }
  return warnings;
}

/** A custom domain is a host with all its paths. */
function patternOf({ pattern, customDomain }: Route): Pattern {
  const [, host = "", path = ""] = /^(?:\*?https?:\/\/)?([^/]*)(\/.*)?$/.exec(pattern) ?? [];
  if (customDomain || (path === "" && host.endsWith("*")))
    return { host: host.toLowerCase().replace(/(?<=.)\*$/, ""), path: "/*" };
  return { host: host.toLowerCase(), path: path || "/" };
}

/** Whether a route takes in a host and a path; what is undefined is left open by the rule. */
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

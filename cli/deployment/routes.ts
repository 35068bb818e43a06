import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import { pathsOf } from "../warnings/samples.ts";
import type { Deployment, Route } from "./deployment.ts";

/** The parts of a route's pattern. */
export interface Pattern {
  /** In lower case. A `*` at the start matches any text, even an empty text. */
  readonly host: string;
  /** With the leading slash. A `*` at the end matches any text, even an empty text. */
  readonly path: string;
}

/** Warnings about routes that miss requests of a rule, or that match too many requests. */
export function routeWarnings({ rules }: Config, { routes }: Deployment): LocalFinding[] {
  if (routes.length === 0) return [];
  const patterns = routes.map(patternOf);
  const warnings: LocalFinding[] = routes.flatMap((route, index) => {
    const { host, path } = patterns[index] as Pattern;
    const found: (LocalFinding | false)[] = [
      path !== "/*" && {
        code: "route-by-path",
        severity: "warning",
        path: "routes",
        message: `${route.pattern} compares the path as it is written, with its case and its query: a path that is spelt differently reaches the origin without Weir`,
        cure: `Route ${host}/*, and select the paths in the rules`,
      },
      route.customDomain &&
        /[/*]/.test(route.pattern) && {
          code: "custom-domain-pattern",
          severity: "fault",
          path: "routes",
          message: `The custom domain ${route.pattern} is not a host name alone, so wrangler refuses it`,
          cure: `Write ${host.replace(/^\*\.?/, "")} without a path and without *, or remove custom_domain`,
        },
      /^\*[^.]/.test(host) && {
        code: "route-any-prefix",
        severity: "warning",
        path: "routes",
        message: `${route.pattern} also matches other hosts with the same ending, such as my${host.slice(1)}`,
        cure: `Write two routes, ${host.slice(1)}/* and *.${host.slice(1)}/*`,
      },
    ];
    return found.filter((finding) => finding !== false);
  });

  for (const { name, match, for: audience } of rules) {
    if (audience === "programs") continue;
    const hosts = match.hosts?.map((host) => host.replace(/^\*/, "any")) ?? [undefined];
    const missed = hosts.flatMap((host) =>
      (match.paths ? pathsOf(match) : [undefined])
        .filter((path) => !patterns.some((pattern) => covers(pattern, host, path)))
        .map((path) => `${host ?? ""}${path ?? ""}`),
    );
    if (missed.length === 0) continue;
    warnings.push({
      code: "route-misses-rule",
      severity: "warning",
      path: "routes",
      message: `The rule "${name}" matches requests that reach the origin without Weir, such as ${missed[0]}`,
      cure: "Add a route for the whole host, such as api.example.com/*",
    });
  }
  return warnings;
}

/** Returns the pattern of a route. A custom domain matches all paths of its host. */
export function patternOf({ pattern, customDomain }: Route): Pattern {
  const [, host = "", path = ""] = /^(?:\*?https?:\/\/)?([^/]*)(\/.*)?$/.exec(pattern) ?? [];
  if (customDomain || (path === "" && host.endsWith("*")))
    return { host: host.toLowerCase().replace(/(?<=.)\*$/, ""), path: "/*" };
  return { host: host.toLowerCase(), path: path || "/" };
}

/** Whether a route matches a host and a path. An undefined host or path matches every route. */
export function covers(
  pattern: Pattern,
  host: string | undefined,
  path: string | undefined,
): boolean {
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

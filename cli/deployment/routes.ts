import {
  contains,
  hostLookup,
  type Network,
  parseAddress,
  parseNetwork,
  unwrapIPv4,
} from "../../src/config/address.ts";
import { PREFIX_VAR } from "../../src/config/bindings.ts";
import { ORIGIN_URL, parseOriginUrl } from "../../src/config/origin.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Finding, LocalFinding } from "../finding.ts";
import { pathsOf } from "../warnings/costs.ts";
import {
  type Deployment,
  isSecretListed,
  type Route,
  textVarOf,
  URL_SECRET,
} from "./deployment.ts";
import { isTemplate } from "./environment.ts";
import { settingIn, valueIn } from "./notation.ts";
import { storeOf } from "./worker.ts";

/** The parts of a route's pattern. */
interface Pattern {
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
function patternOf({ pattern, customDomain }: Route): Pattern {
  const [, host = "", path = ""] = /^(?:\*?https?:\/\/)?([^/]*)(\/.*)?$/.exec(pattern) ?? [];
  if (customDomain || (path === "" && host.endsWith("*")))
    return { host: host.toLowerCase().replace(/(?<=.)\*$/, ""), path: "/*" };
  return { host: host.toLowerCase(), path: path || "/" };
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

/**
 * Warnings about environments with the same route. Cloudflare gives a route to one Worker only, and
 * each environment is a Worker of its own.
 */
export function sameRouteWarnings(
  deployments: readonly Deployment[],
  checks: (deployment: Deployment) => boolean,
): Finding[] {
  return deployments.flatMap((deployment, index) => {
    const own = new Set(deployment.routes.map(textOf));
    // Each pair is reported once, unless only one of the two environments is checked.
    const others = deployments.filter(
      (each, position) => position < index || (position > index && !checks(each)),
    );
    const other = others.find(({ routes }) => routes.some((route) => own.has(textOf(route))));
    const shared = other?.routes.find((route) => own.has(textOf(route)));
    if (!shared || !checks(deployment)) return [];
    const place = other?.environment ? `the environment ${other.environment}` : "the top level";
    const { file, environment } = deployment;
    return [
      {
        code: "same-route",
        severity: "warning",
        file,
        environment,
        path: "routes",
        message: `${shared.pattern} also belongs to ${place}. Only one of the two Workers can have it, and environments inherit routes`,
        cure: `Write other routes here, or ${settingIn(file, "routes", [])}`,
      },
    ];
  });
}

function textOf(route: Deployment["routes"][number]): string {
  const { host, path } = patternOf(route);
  return `${host}${path}`;
}

/**
 * Warnings about environments that would count in the same keys of one Redis database. Durable
 * Objects cannot collide, because each environment is a Worker with its own objects.
 */
export function sharedPrefixWarnings(
  config: Config,
  deployments: readonly Deployment[],
  checks: (deployment: Deployment) => boolean,
): Finding[] {
  const onRedis = deployments.filter((each) => storeOf(config, each) === "upstash");
  return onRedis.flatMap((deployment, index) => {
    const other = onRedis.find((each, position) => {
      // Each pair is reported once, unless only one of the two environments is checked.
      const isReported = position > index && checks(each);
      return each !== deployment && !isReported && mayShare(config, deployment, each);
    });
    if (!other || !checks(deployment)) return [];
    const prefix = prefixOf(config, deployment);
    const urls = [deployment, other].map((each) => textVarOf(each, URL_SECRET));
    const condition = urls.includes(undefined) ? "If both use one database, they" : "They";
    return [
      {
        code: "shared-prefix",
        severity: "warning",
        file: deployment.file,
        environment: deployment.environment,
        path: `vars.${PREFIX_VAR}`,
        message: `This environment and ${nameOf(other)} have the prefix ${prefix}. ${condition} count the same clients in the same counters`,
        cure: `Write ${settingIn(deployment.file, PREFIX_VAR, `${prefix}-${deployment.environment ?? "production"}`)} in the vars of this environment`,
      },
    ];
  });
}

function mayShare(config: Config, one: Deployment, other: Deployment): boolean {
  const [url, otherUrl] = [textVarOf(one, URL_SECRET), textVarOf(other, URL_SECRET)];
  const sameDatabase = url === undefined || otherUrl === undefined || url === otherUrl;
  return sameDatabase && prefixOf(config, one) === prefixOf(config, other);
}

function prefixOf({ prefix }: Config, deployment: Deployment): string {
  return textVarOf(deployment, PREFIX_VAR) ?? prefix;
}

function nameOf({ environment }: Deployment): string {
  return environment === undefined ? "the top level" : `the environment ${environment}`;
}

const VAR = "ORIGIN_URL";

/**
 * Returns findings about the server to which Weir forwards requests. If there is such a finding,
 * every request gets 502, or comes back to the Worker in a loop.
 *
 * @param all all environments, for messages that name the environment with a binding
 */
export function originFindings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  // The Hono middleware ignores the origins.
  if (!deployment.main.mayForward) return [];
  const byHost = [...(config.origins ?? [])].flatMap(([host, { url, binding }]) => {
    const setting = `origins[${JSON.stringify(host)}]`;
    if (binding !== undefined) {
      return bindingFindings(binding, setting, `every request for ${host}`, deployment, all);
    }
    return url === undefined ? [] : loopFindings(url, "routes", `${setting}.url`, deployment);
  });
  return [
    ...byHost,
    ...defaultOriginFindings(config, deployment, all),
    ...hostFindings(config, deployment),
  ];
}

/** Findings about `origin`, which is the origin of all hosts that are not in `origins`. */
function defaultOriginFindings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  const { binding } = config.origin ?? {};
  if (binding !== undefined) {
    return bindingFindings(binding, "origin", "every request", deployment, all);
  }
  const given = textVarOf(deployment, VAR);
  if (given !== undefined && !parseOriginUrl(given)) return [invalid(deployment)];
  const url = (given && parseOriginUrl(given)) ?? config.origin?.url;
  if (given !== undefined && url) return loopFindings(url, `vars.${VAR}`, VAR, deployment);
  if (url !== undefined) return loopFindings(url, "routes", "origin.url", deployment);
  return isSecretListed(deployment, VAR) ? [] : missingFindings(config, deployment, all);
}

/** Warns of each host in `origins` that no route of the Worker matches. */
function hostFindings({ origins }: Config, { routes }: Deployment): LocalFinding[] {
  if (!origins || routes.length === 0) return [];
  const patterns = routes.map(patternOf);
  return [...origins.keys()]
    .filter((host) => !patterns.some((pattern) => coversSome(pattern.host, host)))
    .map((host) => ({
      code: "origin-without-route",
      severity: "warning",
      path: "routes",
      message: `origins has the host ${host}, but no route brings its requests to this Worker`,
      cure: `Add a route such as ${host}/*, or remove the host from origins`,
    }));
}

/** Whether a route's pattern matches a host, or a host below a `*.` name. */
function coversSome(pattern: string, host: string): boolean {
  const end = host.replace(/^\*/, "");
  if (pattern.startsWith("*")) {
    const routed = pattern.slice(1);
    return end.endsWith(routed) || (host.startsWith("*") && routed.endsWith(end));
  }
  return host.startsWith("*") ? pattern.endsWith(end) : pattern === host;
}

function bindingFindings(
  binding: string,
  setting: string,
  requests: string,
  { file, name, fetchers, services }: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  if (!fetchers.has(binding)) {
    const other = all.find((each) => each.fetchers.has(binding));
    const place = other && (other.environment ? `env.${other.environment}` : "the top level");
    return [
      {
        code: "origin-unbound",
        severity: "fault",
        path: "services",
        message: `${setting} names the binding ${binding}, which is not bound here, so ${requests} gets 502`,
        cure: place
          ? `Copy the binding from ${place}, because environments do not inherit services`
          : `Add ${valueIn(file, { binding, service: "the name of the origin's Worker" })} to services`,
      },
    ];
  }
  const own = services.find((each) => each.name === binding && each.service === name);
  return own && name !== undefined
    ? [
        {
          ...loop("services", `The binding ${binding}`),
          cure: `Write the name of the Worker behind Weir as the service of ${binding}`,
        },
      ]
    : [];
}

function invalid({ file }: Deployment): LocalFinding {
  return {
    code: "origin-url-invalid",
    severity: "fault",
    path: `vars.${VAR}`,
    message: `${VAR} is not ${ORIGIN_URL}, so every request gets 502`,
    cure: `Write ${settingIn(file, VAR, "https://origin.example.com")}`,
  };
}

function loopFindings(
  url: string,
  path: string,
  setting: string,
  deployment: Deployment,
): LocalFinding[] {
  const { hostname: host } = new URL(url);
  const { name, routes, compatibilityFlags } = deployment;
  // On a route, the platform forwards the Worker's own request to the zone's origin. On a custom
  // domain and with this flag, it calls the Worker again.
  const isPublic = compatibilityFlags.includes("global_fetch_strictly_public");
  const calls = routes.some((route) => {
    const pattern = patternOf(route).host;
    const isHost = pattern.startsWith("*")
      ? host.endsWith(pattern.slice(1).replace(/^\*/, ""))
      : host === pattern;
    return isHost && (route.customDomain || isPublic);
  });
  const isOwnName =
    name !== undefined && host.endsWith(".workers.dev") && host.startsWith(`${name}.`);
  if (!calls && !isOwnName) return [];
  return [loop(path, path === "routes" ? `${setting} in weir.config.ts` : setting)];
}

function loop(path: string, setting: string): LocalFinding {
  return {
    code: "origin-loop",
    severity: "fault",
    path,
    message: `${setting} names this Worker itself, so every request comes back in a loop`,
    cure: "Name the server behind Weir, by a host name that does not lead to this Worker",
  };
}

function missingFindings(
  { origins }: Config,
  { main, routes, workersDev }: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  // If Weir gets the argument `next`, it needs no origin.
  if (!main.forwards) return [];
  const other = all.find((each) => textVarOf(each, VAR) !== undefined);
  const place = other && (other.environment ? `env.${other.environment}` : "the top level");
  const cure = place
    ? `Set ${VAR} in the vars of this environment too, as in ${place}, because environments do not inherit vars`
    : `Set ${VAR} in vars, or origin in weir.config.ts. If ${VAR} is a secret, add it to secrets.required`;
  const fault = { code: "no-origin", severity: "fault", cure } as const;
  const originOf = hostLookup(origins ?? new Map());
  const domain = routes.find((route) => route.customDomain && !originOf(patternOf(route).host));
  if (domain) {
    return [
      {
        ...fault,
        path: "routes",
        message: `The custom domain ${domain.pattern} has no origin behind it, so Weir cannot forward its requests`,
      },
    ];
  }
  if (origins || routes.length > 0 || workersDev === false) return [];
  return [
    {
      ...fault,
      path: "workers_dev",
      message: "Without a route, Weir answers only on workers.dev, which has no origin behind it",
    },
  ];
}

const ORIGIN_VAR = "ORIGIN_URL";

/** The networks of one machine: RFC 1122 and RFC 4291. */
const LOOPBACK = networksOf("127.0.0.0/8", "0.0.0.0/8", "::1", "::");
/** Private and link-local networks: RFC 1918, 6598, 3927, 4193 and 4291. */
const PRIVATE = networksOf(
  ...["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"],
  ...["169.254.0.0/16", "fc00::/7", "fe80::/10"],
);

/**
 * Warns of origins that only the author's own machine or network can reach, such as
 * `http://localhost:3000`.
 *
 * @param all all environments of wrangler's configuration
 */
export function privateOriginWarnings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  if (!deployment.main.mayForward || isTemplate(deployment, all)) return [];
  return originsOf(config, deployment).flatMap(({ url, setting, path }): LocalFinding[] => {
    const { hostname } = new URL(url);
    const place = placeOf(hostname);
    if (place === undefined) return [];
    return [
      {
        code: "private-origin",
        severity: "warning",
        path,
        message: `${setting} names ${hostname}, ${place}, so the deployed Worker cannot reach it`,
        cure: `Write the public host name of the server. For wrangler dev, write ${ORIGIN_VAR}=${new URL(url).origin} in .dev.vars. A server in a private network needs a tunnel`,
      },
    ];
  });
}

/** Returns the URLs to which a deployment forwards requests. */
function originsOf({ origin, origins }: Config, deployment: Deployment) {
  const byHost = [...(origins ?? [])].flatMap(([host, { url }]) => {
    const setting = `origins[${JSON.stringify(host)}].url`;
    return url === undefined ? [] : [{ url, setting: `${setting} in weir.config.ts`, path: "" }];
  });
  const given = origin?.binding === undefined ? textVarOf(deployment, ORIGIN_VAR) : undefined;
  if (given !== undefined) {
    const url = parseOriginUrl(given);
    return url === undefined
      ? byHost
      : [...byHost, { url, setting: ORIGIN_VAR, path: `vars.${ORIGIN_VAR}` }];
  }
  const url = origin?.url;
  if (url === undefined) return byHost;
  return [...byHost, { url, setting: "origin.url in weir.config.ts", path: "" }];
}

/** Returns words for a host that is not in the Internet; undefined for all other hosts. */
function placeOf(hostname: string): string | undefined {
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  const given = parseAddress(host);
  if (given) {
    const address = unwrapIPv4(given);
    if (LOOPBACK.some((network) => contains(network, address))) return THIS_MACHINE;
    return PRIVATE.some((network) => contains(network, address))
      ? "an address of a private network"
      : undefined;
  }
  if (/(^|\.)localhost$/.test(host)) return THIS_MACHINE;
  return /^[^.]+$|\.(local|internal|lan|home\.arpa)$/.test(host)
    ? "a name of a private network"
    : undefined;
}

const THIS_MACHINE = "which is the machine itself";

function networksOf(...texts: readonly string[]): readonly Network[] {
  return texts.map((text) => parseNetwork(text) as Network);
}

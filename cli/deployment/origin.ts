import { hostLookup } from "../../src/config/host-lookup.ts";
import { ORIGIN_URL, parseOriginUrl } from "../../src/config/origin.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn, valueIn } from "./notation.ts";
import { patternOf } from "./routes.ts";
import { isSecretListed, textVarOf } from "./vars.ts";

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

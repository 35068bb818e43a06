import { hostLookup } from "../../src/config/address.ts";
import { ORIGIN_URL, parseOriginUrl } from "../../src/config/origin.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import { type Deployment, isSecretListed, textVarOf } from "./deployment.ts";
import { isTemplate } from "./environment.ts";
import { patternOf } from "./routes.ts";
import { settingIn, valueIn } from "./wrangler-file.ts";

const VAR = "ORIGIN_URL";

/** A URL to which a deployment forwards requests. */
interface OriginUrl {
  readonly url: string;
  /** The name of the setting, for messages. */
  readonly setting: string;
  /** The path of the setting in wrangler's configuration; undefined if it is in Weir's configuration. */
  readonly path?: string;
}

/**
 * Returns findings about the server to which Weir forwards requests. With a fault, requests get 502, or return to the
 * Worker in a loop.
 *
 * @param all all environments: a message may name one that has the missing setting
 */
export function* originFindings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): Iterable<LocalFinding> {
  // The Hono middleware ignores the origins.
  if (!deployment.main.mayForward) return;
  const { origin, origins } = config;
  for (const [host, { binding }] of origins ?? []) {
    if (binding === undefined) continue;
    const setting = `origins[${JSON.stringify(host)}]`;
    yield* bindingFindings(binding, setting, `every request for ${host}`, deployment, all);
  }
  const given = textVarOf(deployment, VAR);
  if (origin?.binding !== undefined) {
    yield* bindingFindings(origin.binding, "origin", "every request", deployment, all);
  } else if (given !== undefined && !parseOriginUrl(given)) {
    yield found(
      "origin-url-invalid",
      `vars.${VAR}`,
      `${VAR} is not ${ORIGIN_URL}, so every request gets 502`,
      `Write ${settingIn(deployment.file, VAR, "https://origin.example.com")}`,
    );
  } else if (given === undefined && origin?.url === undefined && !isSecretListed(deployment, VAR)) {
    yield* missingFindings(config, deployment, all);
  }
  for (const each of urlsOf(config, deployment)) {
    if (isOwnUrl(each.url, deployment)) {
      yield loop(
        each.path ?? "routes",
        each.path ? each.setting : `${each.setting} in weir.config.ts`,
      );
    }
    const { hostname } = new URL(each.url);
    if (PRIVATE_HOST.test(hostname) && !isTemplate(deployment, all)) yield privateOrigin(each);
  }
}

function urlsOf({ origin, origins }: Config, deployment: Deployment): OriginUrl[] {
  const byHost = [...(origins ?? [])].flatMap(([host, { url }]): OriginUrl[] =>
    url === undefined ? [] : [{ url, setting: `origins[${JSON.stringify(host)}].url` }],
  );
  if (origin?.binding !== undefined) return byHost;
  const given = textVarOf(deployment, VAR);
  const url = given === undefined ? origin?.url : parseOriginUrl(given);
  if (url === undefined) return byHost;
  const setting =
    given === undefined ? { setting: "origin.url" } : { setting: VAR, path: `vars.${VAR}` };
  return [...byHost, { url, ...setting }];
}

function* bindingFindings(
  binding: string,
  setting: string,
  requests: string,
  { file, name, fetchers, services }: Deployment,
  all: readonly Deployment[],
): Iterable<LocalFinding> {
  if (!fetchers.has(binding)) {
    const other = all.find((each) => each.fetchers.has(binding));
    yield found(
      "origin-unbound",
      "services",
      `${setting} names the binding ${binding}, which is not bound here, so ${requests} gets 502`,
      other
        ? `Copy the binding from ${tableOf(other)}, because environments do not inherit services`
        : `Add ${valueIn(file, { binding, service: "the name of the origin's Worker" })} to services`,
    );
  } else if (name && services.some((each) => each.name === binding && each.service === name)) {
    const cure = `Write the name of the Worker behind Weir as the service of ${binding}`;
    yield loop("services", `The binding ${binding}`, cure);
  }
}

function tableOf({ environment }: Deployment): string {
  return environment === undefined ? "the top level" : `env.${environment}`;
}

function loop(
  path: string,
  setting: string,
  cure = "Name the server behind Weir, by a host name that does not lead to this Worker",
): LocalFinding {
  const message = `${setting} names this Worker itself, so every request comes back in a loop`;
  return found("origin-loop", path, message, cure);
}

function isOwnUrl(url: string, { routes, compatibilityFlags }: Deployment): boolean {
  const { hostname } = new URL(url);
  // On a route, the platform sends a Worker's subrequest to the zone's origin. On a custom domain, or with the flag
  // below, the platform calls the Worker again.
  const isPublic = compatibilityFlags.includes("global_fetch_strictly_public");
  return routes.some(
    (route) => (route.customDomain || isPublic) && patternOf(route).host === hostname,
  );
}

function* missingFindings(
  { origins }: Config,
  { main, routes, workersDev }: Deployment,
  all: readonly Deployment[],
): Iterable<LocalFinding> {
  // A module that calls `weir` in its own code may pass `next`, and then needs no origin.
  if (!main.forwards) return;
  const other = all.find((each) => textVarOf(each, VAR) !== undefined);
  const cure = other
    ? `Set ${VAR} in the vars of this environment too, as in ${tableOf(other)}, because environments do not inherit vars`
    : `Set ${VAR} in vars, or origin in weir.config.ts. If ${VAR} is a secret, add it to secrets.required`;
  const originOf = hostLookup(origins ?? new Map());
  const domain = routes.find((route) => route.customDomain && !originOf(patternOf(route).host));
  if (domain) {
    const message = `The custom domain ${domain.pattern} has no origin behind it, so Weir cannot forward its requests`;
    yield found("no-origin", "routes", message, cure);
  } else if (!origins && routes.length === 0 && workersDev !== false) {
    const message =
      "Without a route, Weir answers only on workers.dev, which has no origin behind it";
    yield found("no-origin", "workers_dev", message, cure);
  }
}

/** Warns of an origin that only the author's own machine or network can reach, such as `http://localhost:3000`. */
function privateOrigin({ url, setting, path }: OriginUrl): LocalFinding {
  const { hostname, origin } = new URL(url);
  // ORIGIN_URL does not replace an origin of one host.
  const forDev = setting.startsWith("origins")
    ? ""
    : ` For wrangler dev, write ${VAR}=${origin} in .dev.vars.`;
  return found(
    "private-origin",
    path ?? "",
    `${path ? setting : `${setting} in weir.config.ts`} names ${hostname}, which the deployed Worker cannot reach`,
    `Write the public host name of the server.${forDev} A server in a private network needs a tunnel`,
  );
}

/** Hosts that Cloudflare cannot reach: this machine, private addresses (RFC 1918, 6598, 3927, 4193), and local names. */
const PRIVATE_HOST =
  /^(?:localhost|127\..+|0\.0\.0\.0|10\..+|192\.168\..+|169\.254\..+|172\.(?:1[6-9]|2\d|3[01])\..+|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\..+|\[(?:::1?|f[cd].+|fe[89ab].+)\]|[^.[]+|.+\.(?:localhost|local|internal|lan|home\.arpa))$/;

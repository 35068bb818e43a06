import { parseAddress } from "../../src/config/address.ts";
import { contains, type Network, parseNetwork, unwrapIPv4 } from "../../src/config/network.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { isTemplate } from "./environment.ts";
import { textVarOf } from "./vars.ts";

const VAR = "ORIGIN_URL";

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
        cure: `Write the public host name of the server. For wrangler dev, write ${VAR}=${new URL(url).origin} in .dev.vars. A server in a private network needs a tunnel`,
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
  const given = origin?.binding === undefined ? textVarOf(deployment, VAR) : undefined;
  if (given !== undefined) {
    const url = parseOriginUrl(given);
    return url === undefined ? byHost : [...byHost, { url, setting: VAR, path: `vars.${VAR}` }];
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

import type { Conditions } from "../config/conditions.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import type { TestedCondition } from "./condition-results.ts";
import type { NearPaths } from "./near-path.ts";
import { unclearHeader, unclearParameter } from "./unclear-values.ts";

/**
 * Returns why a condition fails although the request nearly fulfils it, or why its result is unknown.
 *
 * @returns undefined if the condition's texts are enough
 */
export function noteOf(
  { condition, result, isException }: TestedCondition,
  request: CanonicalRequest,
  nearPaths: NearPaths,
): string | undefined {
  switch (result) {
    case "holds":
      return undefined;
    case "unknown": {
      const effect = isException
        ? "So the exception does not apply."
        : "So the rule counts the request.";
      return `${unknownNote(condition, request)} ${effect}`;
    }
    case "fails":
      return failureNote(condition, request, nearPaths);
    default:
      return result satisfies never;
  }
}

function unknownNote(
  { paths, headers, query, ips, countries, asns }: Conditions,
  request: CanonicalRequest,
): string {
  if (paths) return "Origins may read this path in different ways.";
  if (headers?.[0]) return unclearHeader(headers[0], request);
  if (query?.[0]) return unclearParameter(query[0], request);
  if (ips) return "The request does not show the address of its client.";
  if (countries) {
    return request.cf?.country === "T1"
      ? "Tor hides the country of its users."
      : "Cloudflare does not report the country.";
  }
  if (asns) return "Cloudflare does not report the network.";
  return "Cloudflare does not report the category of the bot.";
}

function failureNote(
  { hosts, methods, paths }: Conditions,
  request: CanonicalRequest,
  nearPaths: NearPaths,
): string | undefined {
  if (paths) return nearPaths.noteOf(paths);
  if (hosts) return hostNote(hosts, request.host);
  if (methods?.includes("HEAD") && request.sentMethod === "GET") {
    return "A rule for GET also counts HEAD, but a rule for HEAD does not count GET.";
  }
  return undefined;
}

function hostNote(hosts: readonly string[], host: string): string | undefined {
  for (const pattern of hosts) {
    if (pattern === `*.${host}`) return `${pattern} does not include ${host} itself.`;
    if (host.endsWith(`.${pattern}`)) return `${pattern} does not include hosts below it.`;
  }
  return undefined;
}

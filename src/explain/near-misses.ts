import type { CanonicalRequest } from "../request/canonical-request.ts";
import type { TestedCondition } from "./condition-results.ts";

/** Returns why a condition fails although the request nearly fulfils it; undefined for other requests. */
export function noteOf(
  { condition, result, isException }: TestedCondition,
  request: CanonicalRequest,
  _caseSensitivePaths: boolean,
): string | undefined {
  const { hosts, methods, paths } = condition;
  if (result === "unknown") return unknownNote(isException);
  if (result === "holds") return undefined;
  if (hosts) return hostNote(hosts, request.host);
  if (methods?.includes("HEAD") && request.sentMethod === "GET") {
    return "A rule for GET also counts HEAD, but a rule for HEAD does not count GET.";
  }
  if (paths) return undefined;
  return undefined;
}

function unknownNote(isException: boolean): string {
  return isException
    ? "The request does not show this with certainty, so the exception does not apply."
    : "The request does not show this with certainty, so the rule counts it.";
}

function hostNote(hosts: readonly string[], host: string): string | undefined {
  for (const pattern of hosts) {
    if (pattern === `*.${host}`) return `${pattern} does not include ${host} itself.`;
    if (host.endsWith(`.${pattern}`)) return `${pattern} does not include hosts below it.`;
  }
  return undefined;
}

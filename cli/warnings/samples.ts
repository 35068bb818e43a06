import { type Conditions, splitRoute } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import { canonicalPath } from "../../src/request/canonical-path.ts";
import type { CanonicalRequest } from "../../src/request/canonical-request.ts";
import { createMatcher } from "../../src/request/matcher.ts";

/** What stands where a rule leaves open what does. No rule names it but by `*` or a parameter. */
const ANY_HOST = "any.invalid";
const ANY_LABEL = "any";
const ANY_SEGMENT = "0";
const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"];

/** A request that a rule is about, as far as rules are concerned. */
export interface Sample extends CanonicalRequest {
  readonly host: string;
}

/**
 * Requests that show what a rule's conditions are about: each host, method and path that it names,
 * with something in the place of what it leaves open.
 *
 * Those that fail its conditions all the same, as where a parameter's pattern asks for more than a
 * `0`, are left out: they would show nothing.
 */
export function samplesOf(rule: Rule, caseSensitivePaths: boolean): Sample[] {
  const { except: _, ...conditions } = rule.match;
  const selects = createMatcher([{ ...rule, match: conditions }], caseSensitivePaths);
  const { hosts = [ANY_HOST], methods = METHODS } = conditions;
  return hosts
    .flatMap((host) =>
      methods.flatMap((method) =>
        pathsOf(conditions).map((path) => ({
          ...canonicalPath(path, caseSensitivePaths),
          method: method === "HEAD" ? "GET" : method,
          sentMethod: method,
          preflight: false,
          host: host.replace(/^\*/, ANY_LABEL),
          search: "",
          headers: new Headers(),
          cf: undefined,
        })),
      ),
    )
    .filter((sample) => selects(sample).length > 0);
}

/** Paths as one would ask for them: `/v1/*` is about `/v1` and all below. */
export function pathsOf({ paths = ["/"] }: Conditions): string[] {
  return paths.flatMap((route) => {
    const segments = splitRoute(route);
    const last = segments.at(-1) ?? "";
    const whole = segments.map((segment) => (/^[:*]/.test(segment) ? ANY_SEGMENT : segment));
    const without = whole.slice(0, -1);
    if (last === "*") return [without, whole, [...whole, ANY_SEGMENT]].map(toPath);
    return (last.endsWith("?") ? [without, whole] : [whole]).map(toPath);
  });
}

function toPath(segments: readonly string[]): string {
  return `/${segments.map((segment) => segment.replace(/^\//, "")).join("/")}`;
}

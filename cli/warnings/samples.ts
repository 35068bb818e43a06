import type { Conditions } from "../../src/config/conditions.ts";
import { splitRoute } from "../../src/config/route.ts";

/** The segment that replaces `*` or a parameter. */
const ANY_SEGMENT = "0";

/** Sample paths that match a rule. `/v1/*` gives `/v1`, `/v1/0` and `/v1/0/0`. */
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

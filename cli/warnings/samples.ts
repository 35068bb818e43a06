import { type Conditions, splitRoute } from "../../src/config/match.ts";

/** Stands where a route has `*` or a parameter. */
const ANY_SEGMENT = "0";

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

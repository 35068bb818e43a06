import fc from "fast-check";
import { expect, test } from "vitest";
import { routeCovers, routesDisjoint, segmentsOf } from "../../../cli/warnings/coverage.ts";
import { defineConfig } from "../../../src/config/index.ts";
import { createMatcher } from "../../../src/request/matcher.ts";
import { canonicalPath } from "../../../src/request/path.ts";

// If route A covers route B, A must match every path that B matches. This test checks that with the
// real matcher, and with generated routes and paths.

const SEGMENTS = [
  "a",
  "b",
  "Login",
  "7",
  "*",
  ":x",
  ":x{[a-z]+}",
  ":x{[0-9]+}",
  ":x{.+}",
  ":x{a|b/a}",
];
const MORE = [":x{(a|b)?}", ":x{[^7]*}", ":x{a(/b)?}", ":x{\\d+}", ":x{[ab]{1,2}}"];

const segment = fc.constantFrom(...SEGMENTS, ...MORE);
const route = fc
  .tuple(fc.array(segment, { maxLength: 3 }), fc.constantFrom("", "/*", "/:y?"))
  .map(([segments, end]) => segments.map((each) => `/${each}`).join("") + end || "/");
const path = fc
  .array(fc.constantFrom("a", "b", "login", "7", "ab", "77"), { maxLength: 4 })
  .map((parts) => `/${parts.join("/")}`);

function matchesRoute(given: string, caseSensitive: boolean) {
  const quota = { name: "r", limit: 1, window: 1 };
  const { rules } = defineConfig({ rules: [{ ...quota, match: { paths: [given] } }] });
  const match = createMatcher(rules, caseSensitive);
  return (pathname: string) =>
    match({
      ...canonicalPath(pathname, caseSensitive),
      method: "GET",
      sentMethod: "GET",
      hasBody: false,
      hasHiddenQuery: false,
      isPreflight: false,
      host: "a.example",
      search: "",
      headers: new Headers(),
      cf: undefined,
    } as unknown as Parameters<typeof match>[0]).length > 0;
}

test.each([false, true])(
  "coverage agrees with the matcher, case-sensitive: %s",
  (caseSensitive) => {
    const seen = { covered: 0, disjoint: 0 };
    fc.assert(
      fc.property(
        route,
        route,
        fc.array(path, { minLength: 20, maxLength: 20 }),
        (wide, narrow, paths) => {
          const inWide = matchesRoute(wide, caseSensitive);
          const inNarrow = matchesRoute(narrow, caseSensitive);
          const [wides, narrows] = [wide, narrow].map((each) => segmentsOf(each, caseSensitive));
          const covers = narrows?.every((each) =>
            wides?.some((other) => routeCovers(other, each, caseSensitive)),
          );
          const disjoint = narrows?.every((each) =>
            wides?.every((other) => routesDisjoint(other, each, caseSensitive)),
          );
          for (const each of paths) {
            if (!inNarrow(each)) continue;
            if (covers)
              expect(inWide(each), `${wide} covers ${narrow}, but not ${each}`).toBe(true);
            if (disjoint) expect(inWide(each), `${wide} shares ${each} with ${narrow}`).toBe(false);
            if (covers) seen.covered++;
            if (disjoint) seen.disjoint++;
          }
        },
      ),
      { numRuns: 5000 },
    );
    // Without these lines, a function that always returns false would pass.
    expect(seen.covered).toBeGreaterThan(100);
    expect(seen.disjoint).toBeGreaterThan(100);
  },
);

import fc from "fast-check";
import { expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { createRouteTest } from "../../../src/explain/matching.ts";
import { canonicalRequest } from "../../../src/request/canonical-request.ts";
import { createMatcher } from "../../../src/request/matcher.ts";

const SEGMENTS = ["a", "A", "b-c", "a.b", "%61", "é", ":id", ":id{[a-c]+}", "*", "", "b;c", "~_"];
const SENT = [
  ...SEGMENTS.slice(0, 6),
  "",
  "..",
  ".",
  "%2fa",
  "%252fb",
  "b;c",
  "a;x",
  "a%00b",
  "~_",
];

/** Whether the matcher finds a rule with these routes, and whether the test keeps it. */
function matchOf(routes: readonly string[], path: string, caseSensitivePaths: boolean) {
  const rule = { name: "one", match: { paths: routes }, limit: 1, window: "1m" } as const;
  const { rules } = defineConfig({ caseSensitivePaths, rules: [rule] });
  const request = canonicalRequest(new Request(`https://a.example${path}`), caseSensitivePaths);
  if (!request) throw new Error("The path is too long.");
  return {
    matches: createMatcher(rules, caseSensitivePaths)(request).length > 0,
    mayMatch: createRouteTest(request, caseSensitivePaths)(rules[0]?.match.paths),
  };
}

const routeOf = (segments: readonly string[]) => `/${segments.join("/")}`;
const routes = fc
  .array(fc.constantFrom(...SEGMENTS), { minLength: 1, maxLength: 4 })
  .filter((all) => all.filter((each) => each.startsWith(":")).length < 2)
  .map(routeOf);
const paths = fc.array(fc.constantFrom(...SENT), { minLength: 1, maxLength: 5 }).map(routeOf);

it("keeps each rule that matches, for any path and any routes", () => {
  let matching = 0;
  let left = 0;
  fc.assert(
    fc.property(
      fc.array(routes, { minLength: 1, maxLength: 3 }),
      paths,
      fc.boolean(),
      (all, path, isSensitive) => {
        const { matches, mayMatch } = matchOf([...new Set(all)], path, isSensitive);
        if (matches) expect(mayMatch).toBe(true);
        matching += Number(matches);
        left += Number(!mayMatch);
      },
    ),
    { numRuns: 2000 },
  );
  expect(matching).toBeGreaterThan(200);
  expect(left).toBeGreaterThan(200);
});

it.each([
  ["/api/v1/users", "/api/v2/users", false],
  ["/api/v1/users", "/api/v1/user", false],
  ["/api/v1/:id", "/api/v2/7", false],
  ["/api/v1/:id", "/api/v1/7/8", true],
  ["/api/v1/*", "/api/v1", true],
  ["/API/v1", "/api/V1", true],
  ["/:id", "/x/y", true],
])("tests whether %s may match %s", (route, path, expected) => {
  expect(matchOf([route], path, false).mayMatch).toBe(expected);
});

it("keeps a rule without paths", () => {
  const request = canonicalRequest(new Request("https://a.example/x"), false);
  expect(request && createRouteTest(request, false)(undefined)).toBe(true);
});

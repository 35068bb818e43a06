import fc from "fast-check";
import { Hono } from "hono";
import { LinearRouter } from "hono/router/linear-router";
import { PatternRouter } from "hono/router/pattern-router";
import { RegExpRouter } from "hono/router/reg-exp-router";
import { TrieRouter } from "hono/router/trie-router";
import { describe, expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { canonicalRequest } from "../../../src/request/canonical-request.ts";
import { createMatcher } from "../../../src/request/matcher.ts";
import { propertyRuns } from "../../suite/runs.ts";

const ROUTES = [
  ...["/login", "/:locale/login", "/search/:q", "/u/:id/mails", "/u/*/mails", "/api/*", "/a/:x/:y"],
  ...["/otp/:n{[0-9]+}", "/files/:name{.+\\.txt}", "/opt/:x?", "/:a/:b/:c", "/é/:x"],
];

const ROUTERS = { LinearRouter, PatternRouter, RegExpRouter, TrieRouter };

const apps = Object.entries(ROUTERS).map(([name, Router]) => ({
  name,
  /** There is one app for each route, so that no route hides a later route. */
  apps: ROUTES.map((route) => {
    const app = new Hono({ router: new Router() });
    app.all(route, (context) => context.text("matched"));
    return app;
  }),
}));

const { rules } = defineConfig({
  rules: ROUTES.map((path, index) => ({
    name: `r${index}`,
    match: { paths: [path] },
    limit: 1,
    window: 1,
  })),
});
const matchRules = createMatcher(rules, false);

const STARTS = [
  ...["", "/login", "/en/login", "/search/x", "/u/7/mails", "/api/x", "/a/b/c", "/otp/1"],
  ...["/files/a.txt", "/opt/x", "/%C3%A9/x"],
];
const PIECES = [
  ..."/;.\\?#:@*+",
  ...[
    "%3b",
    "%3B",
    "%00",
    "%20",
    "%09",
    "%20%20",
    "%2f",
    "%5c",
    "%2e",
    "..",
    "%2e%2e",
    "%ff",
    "%25",
  ],
  ...["%253b", "%252f", "%2500", "%2520", "%u003b", "%c0%bb", "%EF%BC%9B", "%EF%BC%8F", "%C2%A0"],
  ...["%CC%81".repeat(9), "%CC%81".repeat(40)],
  ...["%E2%80%8B", "%EF%BB%BF", "login", "mails", "search", "otp", "1", "x", "a", "u", ".txt", "é"],
];

const target = fc
  .record({
    start: fc.constantFrom(...STARTS),
    inserted: fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        piece: fc.constantFrom(...PIECES),
      }),
      { maxLength: 4 },
    ),
  })
  .map(({ start, inserted }) => {
    let path = start;
    for (const { at, piece } of inserted) {
      const index = Math.round(at * path.length);
      path = path.slice(0, index) + piece + path.slice(index);
    }
    return path.startsWith("/") ? path : `/${path}`;
  });

async function routesOf(url: string): Promise<[router: string, route: number][]> {
  const matched: [string, number][] = [];
  for (const { name, apps: routeApps } of apps) {
    for (const [index, app] of routeApps.entries()) {
      if ((await app.fetch(new Request(url))).status === 200) matched.push([name, index]);
    }
  }
  return matched;
}

describe("a route of a Hono app behind Weir", () => {
  it("matches a path only if the same route in a rule matches it", async () => {
    await fc.assert(
      fc.asyncProperty(target, async (path) => {
        const url = URL.parse(`http://host${path}`)?.href;
        if (!url) return;
        const request = canonicalRequest(new Request(url), false);
        if (!request) return;
        const selected = new Set(matchRules(request).map(({ rule }) => rule.name));
        const missed = (await routesOf(url)).filter(([, route]) => !selected.has(`r${route}`));
        expect(missed.map(([router, route]) => `${router} ${ROUTES[route]} ${url}`)).toEqual([]);
      }),
      propertyRuns(2000),
    );
  });
});

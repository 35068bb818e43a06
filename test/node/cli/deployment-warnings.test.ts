import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { warningsOf } from "../../../cli/warnings/all.ts";
import type { Warning } from "../../../cli/warnings/warning.ts";
import { defineConfig } from "../../../src/config/index.ts";
import { check, runWeir, temporaryFolder } from "./run-weir.ts";

const RULE = { name: "api", limit: 5, window: "1m" } as const;
const HEAD = 'name = "w"\nmain = "w.ts"\ncompatibility_date = "2026-11-01"\n';

/** Returns the warnings about a wrangler.toml, with a configuration of one rule. */
async function warnings(wrangler: string, match: object = {}): Promise<Warning[]> {
  await using folder = await temporaryFolder();
  await folder.write("wrangler.toml", HEAD + wrangler);
  const config = defineConfig({ rules: [{ ...RULE, match }] });
  return await warningsOf(config, join(folder.path, "rules.json"));
}

async function codes(wrangler: string, match: object = {}): Promise<string[]> {
  return (await warnings(wrangler, match)).map(({ code }) => code);
}

const OFF = "workers_dev = false\n";
const routes = (...patterns: string[]) => `routes = ${JSON.stringify(patterns)}\n`;

// Loading wrangler can take longer than the time limit of a test.
beforeAll(async () => {
  await import("wrangler");
}, 60_000);

describe("wrangler's configuration", () => {
  test.each([
    ["workers_dev = true\n", ["workers-dev"]],
    ["workers_dev = false\n", []],
    // By default, wrangler turns workers.dev on if there is no route.
    ["", ["workers-dev"]],
    ["routes = []\n", ["workers-dev"]],
    [`workers_dev = true\n${routes("api.example.com/*")}`, ["workers-dev"]],
    ["preview_urls = true\n", ["workers-dev", "preview-urls"]],
    ["preview_urls = false\n", ["workers-dev"]],
    [`${OFF}preview_urls = true\n`, ["preview-urls"]],
    [`${OFF}preview_urls = false\n`, []],
    [`${OFF}[cache]\nenabled = true\n`, ["workers-cache"]],
    [`${OFF}[cache]\nenabled = false\n`, []],
    [`${OFF}compatibility_flags = ["global_fetch_strictly_public"]\n`, ["strictly-public-fetch"]],
    [`${OFF}compatibility_flags = ["no_nodejs_compat"]\n`, []],
    [routes("api.example.com/*"), []],
    [routes("*.example.com/*", "example.com/*"), []],
    [routes("*example.com/*"), ["route-any-prefix"]],
    [routes("api.example.com/api/*"), ["route-by-path"]],
    [routes("api.example.com/login"), ["route-by-path"]],
    ['routes = [{ pattern = "edge.example.com", custom_domain = true }]\n', []],
    ['route = "api.example.com/api*"\n', ["route-by-path"]],
  ])("%j gives the warnings %j", async (wrangler, expected) => {
    expect(await codes(wrangler)).toEqual(expected);
  });

  test.each([
    ["/login", ["api.example.com/*"], true],
    ["/login", ["https://api.example.com/*"], true],
    ["/login", ["api.example.com/api/*"], false],
    ["/login", ["api.example.com/api/*", "api.example.com/login*"], true],
    ["/login", ["api.example.com/login"], true],
    ["/login", ["api.example.com/log*"], true],
    ["/login", ["api.example.com/"], false],
    ["/images/*", ["api.example.com/images*"], true],
    ["/images/*", ["api.example.com/images/*"], false],
    ["/images/:id", ["api.example.com/images/*"], true],
    ["/images/:id?", ["api.example.com/images/*"], false],
  ])("has a route for a rule's path %s with %j: %s", async (path, patterns, covered) => {
    const found = await codes(routes(...patterns), { paths: [path] });
    expect(found.includes("route-misses-rule")).toBe(!covered);
  });

  test.each([
    ["api.example.com", "api.example.com/*", true],
    ["api.example.com", "API.example.com/*", true],
    ["api.example.com", "*.example.com/*", true],
    ["api.example.com", "*example.com/*", true],
    ["api.example.com", "www.example.com/*", false],
    ["example.com", "*.example.com/*", false],
    ["example.com", "*example.com/*", true],
    ["*.example.com", "*.example.com/*", true],
    ["*.example.com", "api.example.com/*", false],
  ])("has a route for a rule's host %s with %s: %s", async (host, pattern, covered) => {
    const found = await codes(routes(pattern), { hosts: [host] });
    expect(found.includes("route-misses-rule")).toBe(!covered);
  });

  test("leads to a warning that names a request that no route matches", async () => {
    const match = { hosts: ["api.example.com"], paths: ["/a", "/b"] };
    const found = await warnings(routes("api.example.com/a*"), match);
    expect(found.at(-1)).toMatchObject({
      code: "route-misses-rule",
      where: "wrangler.toml: routes",
      what: expect.stringContaining("api.example.com/b"),
    });
  });

  test("is checked in each environment", async () => {
    const found = await warnings("workers_dev = false\n[env.staging]\nworkers_dev = true\n");
    expect(found).toMatchObject([
      { code: "workers-dev", where: "wrangler.toml, env.staging: workers_dev" },
    ]);
  });

  test.each([
    // Each environment has its own routes and workers_dev, or inherits them from the top level.
    [`${OFF}[env.staging]\n`, []],
    [`${routes("api.example.com/*")}[env.staging]\n`, []],
    [`${routes("api.example.com/*")}[env.staging]\nroutes = []\n`, ["env.staging"]],
    [`[env.production]\nroute = "api.example.com/*"\n`, ["wrangler.toml"]],
    [`[env.a]\n[env.b]\n${OFF}`, ["wrangler.toml", "env.a"]],
  ])("answers on workers.dev if there is no route: %j gives %j", async (wrangler, expected) => {
    const found = (await warnings(wrangler)).filter(({ code }) => code === "workers-dev");
    const places = found.map(({ where }) => where.replace(/: .*/, "").replace(/.*, /, ""));
    expect(places).toEqual(expected);
  });

  test("names preview URLs in the warning about workers.dev if they are on too", async () => {
    const [alone] = await warnings("preview_urls = false\n");
    const [both] = await warnings("");
    expect(alone?.what).not.toContain("for each version");
    expect(both?.what).toContain("for each version");
  });

  test("gives a warning if it cannot be read", async () => {
    expect(await warnings("[[[\n")).toMatchObject([
      { code: "wrangler-unread", where: "wrangler.toml" },
    ]);
  });

  test("gives no warning if it does not exist", async () => {
    await using folder = await temporaryFolder();
    const config = defineConfig({ rules: [RULE] });
    expect(await warningsOf(config, join(folder.path, "rules.json"))).toEqual([]);
  });
});

describe("warnings", () => {
  const open = { ...RULE, match: { paths: ["/login"] } };

  test("are printed below the rules, with their number and the page that explains them", async () => {
    const { code, stdout, stderr } = await check("rules.json", { rules: [open] });
    const [table, list] = stdout.split("\n\n").slice(1);
    expect(table).toMatch(/^RULE /);
    expect(list?.trimEnd().split("\n")).toEqual([
      "1 warning, explained in docs/security.md:",
      expect.stringMatching(/^ {2}fails-open \(rules\[0\]\.onError\): .+\. Set onError: .+\.$/),
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("are a list in JSON, and do not change the exit code", async () => {
    const { code, stdout } = await check("rules.json", { rules: [open] }, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, warnings: [{ code: "fails-open" }] });
    expect(code).toBe(0);
  });

  test.each([
    [[open], 1],
    [[RULE], 0],
  ])("set the exit code of a strict check: the rules %j lead to %i", async (rules, expected) => {
    const { code, stdout } = await check("rules.json", { rules }, "--strict");
    expect(stdout).toContain("rules.json is ok: 1 rule.");
    expect(code).toBe(expected);
  });

  test("are absent for the project's own configuration", async () => {
    const { code, stdout } = await runWeir(["check", "--strict"]);
    expect(stdout).not.toContain("warning");
    expect(code).toBe(0);
  }, 30_000);
});

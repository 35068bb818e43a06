import { describe, expect, test } from "vitest";
import type { CheckFinding } from "../../../cli/finding.ts";
import { COUNTERS, checkFolder, HEAD, RULES, WORKER } from "./check-folder.ts";
import { callWeir, check, REPOSITORY } from "./run-weir.ts";

const RULE = { name: "api", limit: 5, window: "1m" } as const;
const rulesOf = (...rules: object[]) => JSON.stringify({ rules });

/** Returns the warnings about a wrangler.toml, with a configuration of one rule. */
async function warnings(wrangler: string, match: object = {}): Promise<CheckFinding[]> {
  const { findings } = await checkFolder({
    [RULES]: rulesOf({ ...RULE, match }),
    "worker.ts": WORKER,
    "wrangler.toml": HEAD.replace("workers_dev = false\n", "") + wrangler,
  });
  return findings.filter(({ severity }) => severity === "warning");
}

async function codes(wrangler: string, match: object = {}): Promise<string[]> {
  return (await warnings(wrangler, match)).map(({ code }) => code);
}

const OFF = "workers_dev = false\n";
const routes = (...patterns: string[]) => `routes = ${JSON.stringify(patterns)}\n`;

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
    [{ concurrent: 2 }, "", ["hang-ups-unseen"]],
    [{ concurrent: 2 }, 'compatibility_flags = ["enable_request_signal"]\n', []],
    [{ concurrent: 2, for: "programs" }, "", []],
    [{ maxReserved: 5, wait: "1m" }, "", ["hang-ups-unseen"]],
    [{}, "", []],
  ])("leads with the fields %j and the flags %j to %j", async (fields, flags, expected) => {
    const { findings } = await checkFolder({
      [RULES]: rulesOf({ ...RULE, ...fields }),
      "worker.ts": WORKER,
      "wrangler.toml": HEAD + flags + COUNTERS,
    });
    expect(findings.map(({ code }) => code)).toEqual(expected);
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

  test.each([
    ["api.example.com/v1/*", ["route-by-path", "route-misses-rule"]],
    ["api.example.com/rate*", ["route-by-path"]],
  ])("has a route for quotaPath with %s", async (route, expected) => {
    const { findings } = await checkFolder({
      [RULES]: JSON.stringify({ quotaPath: "/rate-limit", rules: [RULE] }),
      "worker.ts": WORKER,
      "wrangler.toml": HEAD + routes(route) + COUNTERS,
    });
    expect(findings.map(({ code }) => code)).toEqual(expected);
  });

  test("leads to a warning that names a request that no route matches", async () => {
    const match = { hosts: ["api.example.com"], paths: ["/a", "/b"] };
    const found = await warnings(routes("api.example.com/a*"), match);
    expect(found.at(-1)).toMatchObject({
      code: "route-misses-rule",
      file: "wrangler.toml",
      path: "routes",
      message: expect.stringContaining("api.example.com/b"),
    });
  });

  test.each([
    ["www.example.com", "api.example.com/*", "Add the route www.example.com/*"],
    ["*.example.com", "api.example.com/*", "Add the route *.example.com/*"],
    ["api.example.com", "api.example.com/v1/*", "Route the whole host: api.example.com/*"],
    [undefined, "api.example.com/v1/*", "Route the whole host: api.example.com/*"],
  ])("leads to a cure that names the host %s, which %s misses", async (host, pattern, cure) => {
    const match = { paths: ["/login"], ...(host && { hosts: [host] }) };
    const found = await warnings(routes(pattern), match);
    expect(found.at(-1)).toMatchObject({ code: "route-misses-rule", cure });
  });

  test("leads to a cure with a custom domain if the Worker has no other routes", async () => {
    const domain = 'routes = [{ pattern = "api.example.com", custom_domain = true }]\n';
    const vars = '[vars]\nORIGIN_URL = "https://origin.example.net"\n';
    const found = await warnings(domain + vars, { hosts: ["www.example.com"] });
    expect(found).toMatchObject([
      { code: "route-misses-rule", cure: "Add www.example.com as a custom domain" },
    ]);
  });

  test("is checked in each environment", async () => {
    const found = await warnings("workers_dev = false\n[env.staging]\nworkers_dev = true\n");
    expect(found).toMatchObject([
      { code: "workers-dev", environment: "staging", path: "workers_dev" },
    ]);
  });

  test.each([
    // Each environment has its own routes and workers_dev, or inherits them from the top level.
    [`${OFF}[env.staging]\n`, []],
    [`${routes("api.example.com/*")}[env.staging]\n`, []],
    [`${routes("api.example.com/*")}[env.staging]\nroutes = []\n`, ["staging"]],
    [`[env.production]\nroute = "api.example.com/*"\n`, [undefined]],
    [`[env.a]\n[env.b]\n${OFF}`, [undefined, "a"]],
  ])("answers on workers.dev if there is no route: %j gives %j", async (wrangler, expected) => {
    const found = (await warnings(wrangler)).filter(({ code }) => code === "workers-dev");
    expect(found.map(({ environment }) => environment)).toEqual(expected);
  });

  test("names preview URLs in the warning about workers.dev if they are on too", async () => {
    const [alone] = await warnings("preview_urls = false\n");
    const [both] = await warnings("");
    expect(alone?.message).not.toContain("for each version");
    expect(both?.message).toContain("for each version");
  });

  test.each([
    ["wrangler.toml", 'name = "a"\nmain = "b', "(line 2, column "],
    ["wrangler.toml", "[[[\n", "(line 1, column "],
    ["wrangler.jsonc", '{\n  "name": ,\n}', "value expected (line 2, column 11)"],
    ["wrangler.json", "[]", "it is not an object"],
  ])("is a fault with its line if it cannot be read: %s %j", async (file, content, message) => {
    const { findings, isFatal } = await checkFolder({ [RULES]: rulesOf(RULE), [file]: content });
    expect(findings).toMatchObject([
      { code: "wrangler-unread", file, message: expect.stringContaining(message) },
    ]);
    expect(isFatal).toBe(true);
  });

  test("gives no finding if it does not exist", async () => {
    expect((await checkFolder({ [RULES]: rulesOf(RULE) })).findings).toEqual([]);
  });
});

describe("warnings", () => {
  const open = { ...RULE, match: { paths: ["/login"] } };

  test("are printed below the rules, with their number and the page that explains them", async () => {
    const { code, stdout, stderr } = await check("rules.json", { rules: [open] });
    const [headline, table, list, page] = stdout.split("\n\n");
    expect(headline).toBe("1 warning in rules.json:");
    expect(table).toMatch(/^RULE /);
    expect(list?.split("\n")).toEqual([
      "rules.json",
      "  warning fails-open at rules[0].onError",
      expect.stringMatching(/^ {4}.+\.$/),
      expect.stringMatching(/^ {4}Cure: Set onError: .+\.$/),
    ]);
    expect(page).toMatch(/^Each code: https:.*docs\/codes\.md\n$/);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("are a list in JSON, and do not change the exit code", async () => {
    const { code, stdout } = await check("rules.json", { rules: [open] }, "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      faults: [],
      warnings: [{ code: "fails-open" }],
    });
    expect(code).toBe(0);
  });

  test.each([
    [[open], 1],
    [[RULE], 0],
  ])("set the exit code of a strict check: the rules %j lead to %i", async (rules, expected) => {
    const { code } = await check("rules.json", { rules }, "--strict");
    expect(code).toBe(expected);
  });

  test("are absent for the project's own configuration", async () => {
    const { code, stdout } = await callWeir(["check", "--strict"], REPOSITORY);
    expect(stdout).toContain("weir.config.ts is ok: ");
    expect(code).toBe(0);
  });
});

test.each([
  ["ip", []],
  ["jwt:sub", ["secret-not-required"]],
])("with the key %s, a secret of tokens gives %j", async (key, expected) => {
  const { findings } = await checkFolder({
    [RULES]: JSON.stringify({ jwt: { secret: "JWT_SECRET" }, rules: [{ ...RULE, key }] }),
    "worker.ts": WORKER,
    "wrangler.toml": HEAD,
  });
  const ofSecrets = findings.filter(({ path }) => path === "secrets.required");
  expect(ofSecrets.map(({ code }) => code)).toEqual(expected);
});

import { describe, expect, test } from "vitest";
import { COUNTERS, checkFolder, HEAD, RULES, WORKER } from "./check-folder.ts";

const RULE = { name: "cart", match: { paths: ["/cart"] }, limit: 5, window: "1m" };
const ROUTE = 'routes = ["shop.example.com/*"]\n';
const BOUND =
  'routes = []\ndurable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n';

/** Returns the files of a Worker with these lines of wrangler.toml. */
function filesWith(wrangler: string) {
  return {
    [RULES]: JSON.stringify({ rules: [RULE] }),
    "worker.ts": WORKER,
    "wrangler.toml": HEAD + ROUTE + wrangler,
  };
}

function checkWith(wrangler: string, env?: string, variables?: NodeJS.ProcessEnv) {
  return checkFolder(filesWith(wrangler), env === undefined ? {} : { env }, variables);
}

/** Three environments, of which only `broken` has a fault. */
const ONE_BROKEN = `${COUNTERS}[env.good]\n${BOUND}[env.broken]\nroutes = []\n`;

test("a Pages project without main and routes is ok", async () => {
  const objects = `durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject", script_name = "counters" }]`;
  const head =
    'name = "site"\ncompatibility_date = "2026-11-01"\npages_build_output_dir = "dist"\n';
  const { text } = await checkFolder({ ...filesWith(""), "wrangler.toml": head + objects });
  expect(text).toContain("is ok: 1 rule.");
});

describe("the environments of wrangler's configuration", () => {
  test("have no findings if each of them can work", async () => {
    const { findings, text } = await checkWith(`${COUNTERS}[env.good]\n${BOUND}`);
    expect(findings).toEqual([]);
    expect(text).toContain("is ok: 1 rule.");
  });

  test("each have their own section of the report", async () => {
    const { text } = await checkWith(ONE_BROKEN);
    expect(text).toMatch(
      /^1 fault in wrangler\.toml:\n\nwrangler\.toml, environment broken\n {2}fault/,
    );
  });

  test.each<[string | undefined, NodeJS.ProcessEnv, (string | undefined)[]]>([
    [undefined, {}, ["broken"]],
    ["good", {}, []],
    ["broken", {}, ["broken"]],
    ["", {}, []],
    [undefined, { CLOUDFLARE_ENV: "good" }, []],
    [undefined, { CLOUDFLARE_ENV: "broken" }, ["broken"]],
    ["good", { CLOUDFLARE_ENV: "broken" }, []],
  ])("are selected by --env %j and the variables %j", async (env, variables, expected) => {
    const { findings, isFatal } = await checkWith(ONE_BROKEN, env, variables);
    expect(findings.map(({ environment }) => environment)).toEqual(expected);
    expect(isFatal).toBe(expected.length > 0);
  });

  test.each([
    [undefined, "npx wrangler secret put WEIR_KEY_SECRET, and"],
    ["staging", "npx wrangler secret put WEIR_KEY_SECRET --env staging, and"],
  ])("are named in the command that sets a secret: %j", async (env, command) => {
    const vars = (table: string) => `[${table}]\nWEIR_KEY_SECRET = "${"s".repeat(32)}"\n`;
    const staging = `[env.staging]\n${BOUND}${vars("env.staging.vars")}`;
    const { findings } = await checkWith(`${COUNTERS}${vars("vars")}${staging}`, env ?? "");
    expect(findings).toMatchObject([
      { code: "secret-in-vars", environment: env, cure: expect.stringContaining(command) },
    ]);
  });

  test("must include the selected environment", async () => {
    const { findings, isFatal } = await checkWith(ONE_BROKEN, "brokne");
    expect(findings).toMatchObject([
      { code: "environment-unknown", cure: expect.stringContaining("good, broken") },
    ]);
    expect(isFatal).toBe(true);
  });

  describe("in a build of wrangler", () => {
    const deploy = { WRANGLER_COMMAND: "deploy" };

    test.each([
      ["a fault of one environment does not stop it", ONE_BROKEN, deploy, false],
      ["a fault of every environment stops it", "[env.staging]\nroutes = []\n", deploy, true],
      ["a fault stops it if there is only the top level", "", deploy, true],
      [
        "a fault of the environment in CLOUDFLARE_ENV stops it",
        ONE_BROKEN,
        { ...deploy, CLOUDFLARE_ENV: "broken" },
        true,
      ],
    ])("%s", async (_, wrangler, variables, expected) => {
      const { findings, text, isFatal, note } = await checkWith(wrangler, undefined, variables);
      expect(findings).not.toEqual([]);
      expect(text).not.toContain("is ok");
      expect(isFatal).toBe(expected);
      expect(note?.includes("CLOUDFLARE_ENV")).toBe(expected ? undefined : true);
      expect(text).toContain(note ?? "");
    });

    test("a fault of the rules stops it", async () => {
      const files = {
        [RULES]: JSON.stringify({ rules: [{ ...RULE, cost: 9 }] }),
        "worker.ts": WORKER,
        "wrangler.toml": HEAD + ROUTE + COUNTERS,
      };
      expect((await checkFolder(files, {}, deploy)).isFatal).toBe(true);
    });
  });
});

const NAMED = (name: string, vars = "") =>
  `[env.${name}]\nroutes = []\nsecrets.required = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"]\n${vars}`;
const PREFIX = (prefix: string) => `vars.WEIR_PREFIX = "${prefix}"\n`;
const URL = (url: string) => `vars.UPSTASH_REDIS_REST_URL = "${url}"\n`;

describe("the warning about environments with the same route", () => {
  const staging = (routes: string) => `${COUNTERS}[env.staging]\n${routes}`;

  test.each<[string, string, number]>([
    ["is reported if one environment inherits the route", staging(""), 1],
    [
      "is reported if the routes have different notations",
      staging('routes = ["https://Shop.example.com/*"]\n'),
      1,
    ],
    ["is not reported if the hosts differ", staging('routes = ["staging.example.com/*"]\n'), 0],
    ["is not reported if the paths differ", staging('routes = ["shop.example.com/api/*"]\n'), 0],
    ["is not reported if one environment has no route", staging("routes = []\n"), 0],
  ])("%s", async (_, wrangler, count) => {
    for (const env of [undefined, "staging"]) {
      const { findings } = await checkWith(wrangler, env);
      const same = findings.filter(({ code }) => code === "same-route");
      expect(same.map(({ environment }) => environment)).toEqual(Array(count).fill("staging"));
    }
  });
});

describe("two environments on Redis", () => {
  test.each<[string, string, (string | undefined)[]]>([
    ["are reported if both have the database as a secret", NAMED("a") + NAMED("b"), ["b"]],
    [
      "are not reported if they have different prefixes",
      NAMED("a") + NAMED("b", PREFIX("weir-b")),
      [],
    ],
    [
      "are reported if they have the same own prefix",
      NAMED("a", PREFIX("x")) + NAMED("b", PREFIX("x")),
      ["b"],
    ],
    [
      "are reported if they have one database in vars",
      NAMED("a", URL("https://a.example")) + NAMED("b", URL("https://a.example")),
      ["b"],
    ],
    [
      "are not reported if they have different databases in vars",
      NAMED("a", URL("https://a.example")) + NAMED("b", URL("https://b.example")),
      [],
    ],
    ["are not reported if one counts in Durable Objects", NAMED("a"), []],
    [
      "are reported once for each environment after the first one",
      NAMED("a") + NAMED("b") + NAMED("c"),
      ["b", "c"],
    ],
  ])("%s", async (_, wrangler, expected) => {
    const { findings } = await checkWith(COUNTERS + wrangler);
    const shared = findings.filter(({ code }) => code === "shared-prefix");
    expect(shared.map(({ environment }) => environment)).toEqual(expected);
  });

  test("are compared even if only one of them is checked", async () => {
    const { findings } = await checkWith(COUNTERS + NAMED("a") + NAMED("b"), "a");
    expect(findings).toMatchObject([
      { code: "shared-prefix", message: expect.stringContaining("the environment b") },
    ]);
  });
});

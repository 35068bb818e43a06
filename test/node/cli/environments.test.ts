import { describe, expect, test } from "vitest";
import { COUNTERS, checkFolder, HEAD, RULES, WORKER } from "./check-folder.ts";

const RULE = { name: "cart", match: { paths: ["/cart"] }, limit: 5, window: "1m" };
const ROUTE = 'routes = ["shop.example.com/*"]\n';
const BOUND = 'durable_objects.bindings = [{ name = "COUNTERS", class_name = "CounterObject" }]\n';

/** Checks a Worker with these lines of wrangler.toml. */
function checkWith(wrangler: string, env?: string, variables?: NodeJS.ProcessEnv) {
  const files = {
    [RULES]: JSON.stringify({ rules: [RULE] }),
    "worker.ts": WORKER,
    "wrangler.toml": HEAD + ROUTE + wrangler,
  };
  return checkFolder(files, env === undefined ? {} : { env }, variables);
}

/** Three environments, of which only `broken` has a fault. */
const ONE_BROKEN = `${COUNTERS}[env.good]\n${BOUND}[env.broken]\n`;

describe("the environments of wrangler's configuration", () => {
  test("have no findings if each of them can work", async () => {
    const { findings, text } = await checkWith(`${COUNTERS}[env.good]\n${BOUND}`);
    expect(findings).toEqual([]);
    expect(text).toContain("is ok: 1 rule.");
  });

  test("each have their own section of the report", async () => {
    const { text } = await checkWith(ONE_BROKEN);
    expect(text).toMatch(
      /^rules\.json has 1 fault:\n\nwrangler\.toml, environment broken\n {2}fault/,
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

  test("must include the selected environment", async () => {
    const { findings, isFatal } = await checkWith(ONE_BROKEN, "brokne");
    expect(findings).toMatchObject([
      { code: "environment-unknown", cure: expect.stringContaining("good, broken") },
    ]);
    expect(isFatal).toBe(true);
  });

  describe("in a build of wrangler, which does not name its environment", () => {
    const deploy = { WRANGLER_COMMAND: "deploy" };

    test.each([
      ["a fault of one environment does not stop it", ONE_BROKEN, deploy, false],
      ["a fault of every environment stops it", "[env.staging]\n", deploy, true],
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
  `[env.${name}]\nsecrets.required = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"]\n${vars}`;
const PREFIX = (prefix: string) => `vars.WEIR_PREFIX = "${prefix}"\n`;
const URL = (url: string) => `vars.UPSTASH_REDIS_REST_URL = "${url}"\n`;

describe("two environments on Redis", () => {
  test.each<[string, string, (string | undefined)[]]>([
    ["may share a database if both have it as a secret", NAMED("a") + NAMED("b"), ["b"]],
    ["have different prefixes", NAMED("a") + NAMED("b", PREFIX("weir-b")), []],
    ["have the same own prefix", NAMED("a", PREFIX("x")) + NAMED("b", PREFIX("x")), ["b"]],
    [
      "share a database in vars",
      NAMED("a", URL("https://a.example")) + NAMED("b", URL("https://a.example")),
      ["b"],
    ],
    [
      "have different databases in vars",
      NAMED("a", URL("https://a.example")) + NAMED("b", URL("https://b.example")),
      [],
    ],
    ["include one that counts in Durable Objects", NAMED("a"), []],
    [
      "are three, and two of them collide with an earlier one",
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

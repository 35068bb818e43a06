import { describe, expect, test } from "vitest";
import { check } from "./run-weir.ts";

/**
 * The secret that each of these tests uses, such as an origin's password. It must not appear in a
 * build log.
 */
const SECRET = "s3cret-5e2c91d47bb0";

const QUOTA = { limit: 5, window: "1m" } as const;
const exempting = (exempt: unknown) => ({ rules: [{ name: "api", ...QUOTA, exempt }] });
const withHeaders = (headers: unknown) => exempting({ headers });

/** Returns everything that `check` prints for a file, as text and as JSON. */
async function printed(file: string, content: unknown): Promise<string> {
  const runs = [await check(file, content), await check(file, content, "--json")];
  return runs.map(({ stdout, stderr }) => stdout + stderr).join("\n");
}

describe("check prints no secret", () => {
  test("of a valid configuration; it prints only the names of headers", async () => {
    const headers = { "x-internal": SECRET, "x-partner": { secret: "PARTNER" } };
    const text = await printed("rules.json", withHeaders(headers));
    expect(text).toContain('"name": "x-internal"');
    expect(text).toContain('"secret": "PARTNER"');
    expect(text).toContain("exempt-by-text");
    expect(text).not.toContain(SECRET);
  });

  test("that is written in place of its name", async () => {
    const text = "hunter2LiteralSecretOf32Characters0";
    const config = { ...withHeaders({ a: { secret: text } }), jwt: { secret: text } };
    const shown = await printed("rules.json", config);
    expect(shown).toContain('"secret": "hun…"');
    expect(shown).not.toContain(text.slice(0, 7));
  });

  test.for([
    "header:x-api-key",
    "header:authorization",
    "header:x-pin",
    "header:x-admin",
    "cookie:session",
    "query:token",
    "query:sig",
    "query:v",
    "param:secret",
    "jwt:plan | header:x-admin",
  ])("in the names of tiers by %s, which clients send", async (by) => {
    const tiers = { by, limits: { [SECRET]: { limit: 900, window: "1m" } } };
    const rules = [{ name: "api", ...QUOTA, tiers, match: { paths: ["/:secret"] } }];
    const text = await printed("rules.json", { rules, jwt: { secret: "NAME" } });
    expect(text).toContain('"#1"');
    expect(text).not.toContain(SECRET);
  });

  test("and prints the names of plans, which are not secret", async () => {
    const tiers = { by: "query:plan", limits: { pro: { limit: 900, window: "1m" } } };
    const text = await printed("rules.json", { rules: [{ name: "api", ...QUOTA, tiers }] });
    expect(text).toContain('"pro"');
  });

  const TIER = { limit: 5, window: "1m" };
  const tiered = (tiers: unknown) => ({ rules: [{ name: "api", ...QUOTA, tiers }] });
  test.for<[path: string, tiers: unknown]>([
    [
      'tiers.limits["(tier 2)"].limit',
      { by: "header:x-api-key", limits: { a: TIER, [SECRET]: { ...TIER, limit: "5" } } },
    ],
    [
      'tiers.limits["(tier 1)"].limt',
      { by: "header:x-api-key", limits: { [SECRET]: { ...TIER, limt: 5 } } },
    ],
    ['tiers.limits["(tier 1)"]', { by: "cookie:sid", limits: { [`bad ${SECRET}`]: TIER } }],
    ['tiers.limits["(tier 1)"]', { by: "query:sig", limits: { [SECRET]: [SECRET] } }],
    [
      'tiers.limits["(tier 1)"].limit',
      { by: "no such key", limits: { [SECRET]: { ...TIER, limit: -1 } } },
    ],
    ["tiers.limits", { by: "header:x-api-key", limits: [{ [SECRET]: TIER }] }],
    ["tiers", [{ [SECRET]: TIER }]],
    ['tiers["…"]', { by: "header:x-api-key", [SECRET]: TIER }],
    ["tiers.limit", { by: "header:x-api-key", limit: { [SECRET]: TIER } }],
    ["tiers.by", { by: `header:x-api-key=${SECRET}`, limits: { a: TIER } }],
  ])("of a faulty tier; it prints only the path: %s", async ([path, tiers]) => {
    const text = await printed("rules.json", tiered(tiers));
    expect(text).toContain(`rules[0].${path}: `);
    expect(text).not.toContain(SECRET);
  });

  test.for<[string, string]>([
    ["the configuration", `export default () => ({ rules: [{ headers: "${SECRET}" }] });`],
    ["a limit", `export default { rules: [{ name: "a", limit: () => "${SECRET}", window: 60 }] };`],
    [
      "exempt",
      `export default { rules: [{ name: "a", limit: 5, window: 60, exempt: () => "${SECRET}" }] };`,
    ],
    [
      "a response",
      `export default { rules: [{ name: "a", limit: 5, window: 60, response: (t = "${SECRET}") => t }] };`,
    ],
    ["a class", `export default class { secret = "${SECRET}" }`],
  ])("in the source of a function in place of %s", async ([, source]) => {
    const text = await printed("rules.mjs", source);
    expect(text).toContain("got a function; ");
    expect(text).not.toContain(SECRET);
  });

  test("of tiers in the preview of a rule", async () => {
    const tiers = { by: "header:x-api-key", limits: { [SECRET]: TIER } };
    expect(await printed("rules.json", { rules: { tiers } })).not.toContain(SECRET);
    expect(await printed("rules.json", { rules: [[{ tiers }]] })).not.toContain(SECRET);
  });

  test.for<[string, unknown]>([
    ["a space after the secret", withHeaders({ a: `${SECRET} ` })],
    ["a line break in the secret", withHeaders({ a: `${SECRET}\nb` })],
    ["letters that are not ASCII", withHeaders({ a: `${SECRET}é` })],
    ["a list around the secret", withHeaders({ a: [SECRET] })],
    ["a field that is unknown", withHeaders({ a: { text: SECRET } })],
    ["the secret in place of its name", withHeaders({ a: { secret: SECRET } })],
    ["headers as a text", withHeaders(`a: ${SECRET}`)],
    ["headers as a list", withHeaders([`a: ${SECRET}`])],
    ["a whole field as a name", withHeaders({ [`a: ${SECRET}`]: "" })],
    ["exempt as a text", exempting(SECRET)],
    ["exempt as a list", exempting([{ a: SECRET }])],
    ["rules that are no list", { rules: { first: exempting({ a: SECRET }).rules[0] } }],
    ["a rule in a list", { rules: [[exempting({ a: SECRET }).rules[0]]] }],
    ["a list of configurations", [withHeaders({ a: SECRET })]],
    ["the key of tokens in place of its name", { rules: [], jwt: { secret: SECRET } }],
    ["a list of keys of tokens", { rules: [], jwt: [{ secret: SECRET }] }],
    ["an origin with a password", { rules: [], origin: { url: `https://u:${SECRET}@a.example` } }],
    ["an origin as a text", { rules: [], origin: `https://u:${SECRET}@a.example` }],
    [
      "an origin with a token",
      { rules: [], origin: { url: `https://a.example/?token=${SECRET}` } },
    ],
    ["an origin with a bare query", { rules: [], origin: { url: `https://a.example/?${SECRET}` } }],
    ["an origin with a fragment", { rules: [], origin: { url: `https://a.example/#${SECRET}` } }],
    ["an origin without its scheme", { rules: [], origin: { url: `a.example/?a=1&t=${SECRET}` } }],
    ["an origin as a text with a token", { rules: [], origin: `https://a.example/?t=${SECRET}` }],
    ["a password without a scheme", { rules: [], origin: { url: `u:${SECRET}@a.example` } }],
    ["keys behind a token", { rules: [], jwt: { jwks: `http://a.example/k?key=${SECRET}` } }],
    ["a key with its value", { rules: [{ name: "a", ...QUOTA, key: `header:x-key=${SECRET}` }] }],
    ["keys behind a password", { rules: [], jwt: { jwks: `https://${SECRET}@a.example/jwks` } }],
  ])("of a faulty configuration: %s", async ([, config]) => {
    const text = await printed("rules.json", config);
    expect(text).toContain("allowed: ");
    expect(text).not.toContain(SECRET);
  });

  test("of two faulty names, and reports both", async () => {
    const { stdout } = await check("a.json", withHeaders({ "a: b": "c", "a: d": "e" }), "--json");
    expect(JSON.parse(stdout).faults).toMatchObject([
      { path: 'rules[0].exempt.headers["a:…"]' },
      { path: 'rules[0].exempt.headers["a:…"]' },
    ]);
  });

  const LINE = `  "x-internal": ${SECRET}`;
  test.for<[file: string, content: string, place: string]>([
    ["a.json", `{ "rules": [],\n${LINE} }`, "(line 2, column 17)"],
    ["a.json", `{ "rules": [],\n  "x-internal": "${SECRET}\n" }`, "(line 2, column 17)"],
    ["a.json", SECRET, "(line 1, column 1)"],
    ["a.ts", `export default {\n${LINE}" };`, "a.ts:2"],
    ["a.ts", `export default {\n  "x-internal": "${SECRET} };`, "a.ts:"],
    ["a.ts", `enum A { "x-internal" == "${SECRET}" }`, "a.ts:1"],
    ["a.ts", `export default "${SECRET}" + /(/;`, "Unterminated group"],
    ["a.mjs", `export default {\n  "x-internal": "${SECRET} };`, "a.mjs:2"],
  ])(
    "of a file that cannot be read; it prints only where the fault is: %s %s",
    async ([file, content, place]) => {
      const text = await printed(file, content);
      expect(text).toContain("SyntaxError");
      expect(text).toContain(place);
      expect(text).not.toContain(SECRET.slice(0, 8));
    },
  );
});

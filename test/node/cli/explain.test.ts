import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { explainWith, runExplain } from "./explain-command.ts";
import { callWeir, REPOSITORY, temporaryFolder } from "./run-weir.ts";

const RULE = { name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m", ban: "1h" };
const CONFIG = { rules: [RULE] };
const LOGIN = "https://api.example.com/login";
const AT = ["--at-time", "2026-11-23T08:00:15Z", "--ip", "203.0.113.7"];

it("explains a request with its key, counters, stored keys and response", async () => {
  const { code, stdout, stderr } = await runExplain(CONFIG, ["POST", LOGIN, ...AT]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toBe(`✓ Allowed: POST api.example.com/login.

Request  POST api.example.com/login
Client   203.0.113.7

✓ login applies (enforce)
    ✓ match.paths  /login (expected: /login)
    key         ip = 203.0.113.7, from the header cf-connecting-ip
    client      MMXuBUwSU35Th2hdK_MvhQ, cost 1
    POLICY  LIMIT  COUNT  COST  LEFT AFTER  MORE FROM                IN
    login       5      0     1           4  2026-11-23 08:01:00 UTC  45s
    stored key  weir:login:1m:MMXuBUwSU35Th2hdK_MvhQ:29923680 → 1, expires 2026-11-23 08:01:01 UTC

The origin's response gets these headers:
  ratelimit: "login";r=4;t=45
  ratelimit-policy: "login";q=5;w=60

• All counts are 0 here, because no store was read. --against https://… shows the live counters and overrides of a
  Worker.
• WEIR_KEY_SECRET is not set here. If the Worker has it, its identities and stored keys differ from these.
`);
});

it("prints lines of at most 120 characters, except the URL, stored keys and fields", async () => {
  const paths = Array.from({ length: 40 }, (_, index) => `/a-rather-long-path-${index}`);
  const rules = [
    { ...RULE, match: { paths, headers: { "x-plan": false } } },
    { ...RULE, name: "other", match: { except: { paths } } },
  ];
  const { text } = await explainWith({ rules }, [`https://example.com${paths[3]}`, ...AT]);
  for (const line of text.split("\n")) expect(line.length, line).toBeLessThanOrEqual(120);
  expect(text).toContain("– other  match.except.paths: /a-rather-long-path-3 (excepted: /a-rather");
});

it("shows all conditions of rules that do not apply with --verbose", async () => {
  const match = { methods: ["POST"], hosts: ["api.example.com"], headers: { "x-plan": true } };
  const { text } = await explainWith({ rules: [{ ...RULE, match }] }, ["POST", LOGIN, "--verbose"]);
  expect(text).toMatch(
    /✓ match\.hosts .*\n.*✓ match\.methods .*\n.*✗ match\.headers\.x-plan +absent/,
  );
});

it("says that no rule counts a read of the client's own quotas", async () => {
  const { text } = await explainWith({ ...CONFIG, quotaPath: "/rate-limit" }, [
    "https://example.com/rate-limit",
  ]);
  const verdict = "✓ Not limited: no rule applies to GET example.com/rate-limit.";
  expect(text.slice(0, verdict.length)).toBe(verdict);
  expect(text).toMatch(/– login +quotaPath: GET or HEAD of this path, which no rule counts/);
});

it("denies a request that costs more than a limit of 0", async () => {
  const { text, explanation } = await explainWith(
    { rules: [{ ...RULE, limit: 0, ban: undefined }] },
    [LOGIN, ...AT],
  );
  expect(text).toMatch(
    /^✗ Limited \(429\): GET api\.example\.com\/login\. The rule login has a limit of 0/,
  );
  expect(text).toMatch(
    /✗ login denies the request\n(?:.*\n)* +never fits +the limit is 0\n(?:.*\n)*Weir answers 429:\n/,
  );
  expect(text).not.toMatch(/retry-after|Try again/);
  expect(explanation).toMatchObject({ outcome: "limited", response: { status: 429 } });
});

it.each(["enforce", "shadow", "mark"] as const)(
  "says that a cost above the limit never fits, in the mode %s",
  async (mode) => {
    const { text, explanation } = await explainWith(
      { rules: [{ ...RULE, limit: 4, cost: 5, mode, ban: undefined }] },
      [LOGIN, ...AT],
    );
    expect(text).toMatch(/ +never fits +at most 4 pass at once\n/);
    expect(text.includes("The rule login can never admit it: it costs 5, and")).toBe(
      mode === "enforce",
    );
    expect(text).not.toMatch(/retry-after|Try again/);
    expect(explanation).toMatchObject({ rules: [{ exceeds: true, maxCost: 4 }] });
  },
);

it("denies a request that takes a slot under a rule in trial, and gives it back", async () => {
  const bytes = { name: "bytes", limit: 5, window: "1m", cost: "body:bytes" };
  const trial = { name: "trial", concurrent: 1, mode: "shadow" };
  const args = ["POST", LOGIN, ...AT, "--header", "content-length: 9"];
  const { explanation } = await explainWith({ rules: [bytes, trial] }, args);
  expect(explanation.outcome).toBe("limited");
  expect(explanation.rules[1]?.counters).toMatchObject([{ count: 0 }]);
  expect(explanation.rules[1]?.counters?.[0]).not.toHaveProperty("countAfter");
});

it("takes the secrets and the mode from .dev.vars, and says so", async () => {
  const files = {
    ".dev.vars": `WEIR_KEY_SECRET=${"k".repeat(32)}\nWEIR_MODE=shadow\nWEIR_PREFIX=staging`,
  };
  const { stdout } = await runExplain(CONFIG, [LOGIN, ...AT], {}, files);
  expect(stdout).toMatch(/client {6}(?!MMXuBUwSU35Th2hdK_MvhQ)[\w-]{22}, cost 1\n/);
  expect(stdout).toMatch(/stored key {2}staging:login:/);
  expect(stdout).toMatch(/✓ login applies \(shadow\)/);
  expect(stdout).toMatch(/• WEIR_MODE is shadow \(from \.dev\.vars\)\./);
  expect(stdout).not.toContain("WEIR_KEY_SECRET");
});

it("says which secrets are missing", async () => {
  const exempt = { headers: { "x-probe": { secret: "PROBE_SECRET" } } };
  const { text } = await explainWith({ rules: [{ ...RULE, exempt }] }, [LOGIN, ...AT]);
  expect(text).toContain("• Here, PROBE_SECRET is not set: it exempts nobody from the rule login.");
});

it("counts a request whose secret differs from the one that exempts", async () => {
  const exempt = { headers: { "x-probe": { secret: "PROBE_SECRET" } } };
  const args = [LOGIN, ...AT, "-H", "x-probe: b-secret"];
  const env = { PROBE_SECRET: "a-secret" };
  const { explanation } = await explainWith({ rules: [{ ...RULE, exempt }] }, args, env);
  expect(explanation.rules).toMatchObject([{ applies: true }]);
});

it("says how to complete a request that lacks data about the client", async () => {
  const match = { countries: ["DE"], asns: [64_496], bots: "verified" };
  const { text } = await explainWith({ rules: [{ ...RULE, match }] }, [LOGIN]);
  expect(text).toContain("• The client's address is unknown: add --ip 203.0.113.7.");
  expect(text.replace(/\s+/g, " ")).toContain(
    'unknown: add --cf country=DE, --cf asn=64496, --cf verifiedBotCategory="Search Engine Crawler"',
  );
});

it("explains a path without a host if no rule depends on the host", async () => {
  const { explanation } = await explainWith(CONFIG, ["/login"]);
  expect(explanation.request.host).toBe("example.com");
  expect(explanation.notes[0]).toContain("example.com was assumed");
  const { explanation: named } = await explainWith(CONFIG, [
    "/login",
    "--host",
    "b.example.com:8080",
  ]);
  expect(named.request.host).toBe("b.example.com");
});

it("calls functions in custom with the vars of this folder", async () => {
  await using folder = await temporaryFolder();
  await writeFile(
    join(folder.path, "weir.config.ts"),
    `import { defineConfig } from "edge-weir/config";
     export default defineConfig({
       custom: { keys: { tenant: (request, { env }) => env.TENANTS + request.headers.get("x-tenant") } },
       rules: [{ name: "tenants", key: "custom:tenant", limit: 5, window: "1m" }],
     });`,
  );
  await folder.write(".dev.vars", "TENANTS=tenant-");
  const run = await callWeir(["explain", "/", "-H", "x-tenant: 7", "--json"], folder.path);
  expect(run).toMatchObject({ code: 0, stderr: "" });
  const [element] = JSON.parse(run.stdout).rules[0].key;
  expect(element.alternatives[0]).toMatchObject({ part: "custom:tenant", result: "used" });
});

/** Requests that cannot be explained. */
const REFUSED: readonly (readonly [why: string, args: readonly string[]])[] = [
  ["no request", []],
  ["a method without a URL", ["POST"]],
  ["the method after the URL", [LOGIN, "POST"]],
  ["three words", ["POST", LOGIN, "x"]],
  ["a URL without a scheme", ["api.example.com/login?k=secret"]],
  ["a text that is no URL", ["login"]],
  ["a URL of another scheme", ["ftp://example.com/"]],
  ["a URL with a password", ["https://me:secret@example.com/"]],
  ["a method of no request", ["CONNECT", LOGIN]],
  ["an unknown method", ["FOO", LOGIN]],
  ["the word curl", ["curl", LOGIN]],
  ["a field Host that is no host", [LOGIN, "-H", "host: a/b"]],
  ["a method with a space", ["GET X", LOGIN]],
  ["an address with a port", [LOGIN, "--ip", "203.0.113.7:80"]],
  ["two addresses", [LOGIN, "--ip", "::1", "-H", "cf-connecting-ip: ::1"]],
  ["a field without a colon", [LOGIN, "-H", "secret"]],
  ["an unknown fact", [LOGIN, "--cf", "city=Bonn"]],
  ["a country's name", [LOGIN, "--cf", "country=Germany"]],
  ["a fact without a value", [LOGIN, "--cf", "asn"]],
  ["a fact twice", [LOGIN, "--cf", "asn=1", "--cf", "ASN=2"]],
  ["a word for a boolean", [LOGIN, "--cf", "botManagement.verifiedBot=yes"]],
  ["a time without a zone", [LOGIN, "--at-time", "2026-11-23T08:00:00"]],
  ["a day that does not exist", [LOGIN, "--at-time", "2026-02-30T08:00:00Z"]],
  ["a host with a path", ["/login", "--host", "example.com/a"]],
  ["a URL of 20 KiB", [`https://example.com/${"%41".repeat(7000)}`]],
  ["a path that a Worker answers with 414", [`https://example.com/${"%41".repeat(2000)}`]],
];

it("exits with 1 for a request that cannot be explained, and says why", async () => {
  const texts: string[] = [];
  for (const [why, args] of REFUSED) {
    const { code, stdout, stderr } = await runExplain(CONFIG, args);
    expect({ why, code, stdout }).toEqual({ why, code: 1, stdout: "" });
    expect(stderr).not.toContain("secret");
    texts.push(`### ${why}\n${stderr}`);
  }
  await expect(texts.join("\n")).toMatchFileSnapshot("explain-errors.txt");
});

it("needs a host for a path if a rule depends on the host", async () => {
  const rules = [{ ...RULE, key: ["ip", "host"] }];
  const { code, stderr } = await runExplain({ rules }, ["/login"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/needs a host, because the rule login depends on it/);
});

it.each<[string, string | object, Record<string, string>, RegExp]>([
  [
    "a configuration with faults",
    { rules: [{}] },
    {},
    /has \d faults?\. weir check .* explains them/,
  ],
  ["a configuration that is no JSON", "{", {}, /could not be loaded/],
  [
    "a short key secret",
    CONFIG,
    { WEIR_KEY_SECRET: "short" },
    /decides nothing: WEIR_KEY_SECRET is not/,
  ],
])("exits with 2 for %s", async (_, config, env, message) => {
  const { code, stdout, stderr } = await runExplain(config, [LOGIN], env);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
  const json = await runExplain(config, [LOGIN, "--json"], env);
  expect(json).toMatchObject({ code: 2, stderr: "" });
  expect(JSON.parse(json.stdout)).toMatchObject({
    ok: false,
    error: expect.stringMatching(message),
  });
});

it("exits with 2 if the environment does not exist", async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, "app"));
  await folder.write("app/weir.config.json", JSON.stringify(CONFIG));
  const args = ["explain", LOGIN, "--config", "app/weir.config.json", "--env", "staging"];
  const run = await callWeir(args, folder.path);
  expect(run).toMatchObject({ code: 2, stderr: expect.stringMatching(/environment staging/) });
});

it("prints what docs/replay.md shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/replay.md"), "utf8");
  const [, command = "", shown] = /^npx weir (explain .*)\n\n(✓[^`]+)```/m.exec(page) ?? [];
  const args = command.replaceAll(/'[^']*'/g, (quoted) =>
    quoted.slice(1, -1).replaceAll(" ", "\0"),
  );
  const run = await callWeir(
    args.split(" ").map((word) => word.replaceAll("\0", " ")),
    REPOSITORY,
    {
      WEIR_KEY_SECRET: undefined,
    },
  );
  expect(run.stdout.split("\n•")[0]).toBe(`${shown}`);
});

it("prints no character in JSON that a terminal obeys", async () => {
  const rule = { name: "near", limit: 5, window: "1m", match: { headers: { "x-plan": "b" } } };
  const field = "x-plan: a\u009b31m\u202e";
  const { stdout } = await runExplain({ rules: [rule] }, [LOGIN, "-H", field, "--json"]);
  expect(stdout).not.toMatch(/[\u007f-\u009f\u202a-\u202e]/);
  expect(JSON.parse(stdout).outcome).toBe("unmatched");
});

it("shows where each of the client's own limits came from, on a line of its own", async () => {
  await using folder = await temporaryFolder();
  await folder.write(
    "weir.config.mjs",
    `const slots = { from: "jwt:slots", max: 9, default: 2 };
    const limit = { from: "custom:quota", max: 1000, default: 100 };
    export default {
      rules: [{ name: "api", key: "ip", limit, window: "1m", concurrent: slots }],
      jwt: { secret: "JWT_SECRET" },
      custom: { limits: { quota: () => 500 } },
    };`,
  );
  const args = ["explain", LOGIN, ...AT, "--config", "weir.config.mjs"];
  expect((await callWeir(args, folder.path)).stdout).toContain(`
    limit       500 from custom:quota
                2, the default of jwt:slots, because there is no valid token
`);
});

it("says which bindings a function has read that only the Worker has", async () => {
  await using folder = await temporaryFolder();
  await folder.write(
    "weir.config.mjs",
    `const limit = { from: "custom:quota", max: 1000, default: 100 };
    export default {
      rules: [{ name: "api", key: "ip", limit, window: "1m" }],
      custom: { limits: { quota: ({ key }, { env }) => env.PLANS.get(key) } },
    };`,
  );
  const args = ["explain", LOGIN, ...AT, "--config", "weir.config.mjs", "--json"];
  const { stdout } = await callWeir(args, folder.path);
  expect(JSON.parse(stdout).notes).toContainEqual(
    expect.stringContaining("has read env.PLANS, without a value here"),
  );
});

import { afterAll, beforeAll, expect, it } from "vitest";
import type { ExplainedRule, Explanation } from "../../../src/explain/explanation.ts";
import { send } from "../support/client.ts";
import { type RunningWorker, startWorker, TIMEOUT_MS } from "../support/worker.ts";
import { problem, startFakeApi, TOKEN } from "./fake-api.ts";
import { callWeir, temporaryFolder } from "./run-weir.ts";

// `weir explain --against`: a real Worker, and servers with unusual answers.

const RULES = [
  { name: "login", match: { paths: ["/login"] }, limit: 2, window: "1h", ban: "2h" },
  { name: "all", limit: 100, window: "1d" },
];

let worker: RunningWorker;

beforeAll(async () => {
  const config = JSON.stringify({ timeoutMs: TIMEOUT_MS, rules: RULES });
  worker = await startWorker({
    config: { rules: [] },
    main: `
      import { ControlObject, CounterObject, defineConfig, weir } from "./weir.mjs";
      const limiter = weir(defineConfig(${config}));
      export default {
        fetch: (request, env, ctx) => limiter.fetch(request, env, ctx, () => new Response("app")),
      };
      export { ControlObject, CounterObject };
    `,
    vars: { WEIR_ADMIN_TOKEN: TOKEN },
  });
});
afterAll(() => worker.stop());

async function against(url: string, ...args: string[]) {
  await using folder = await temporaryFolder();
  const env = { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: undefined };
  return await callWeir(["explain", ...args, "--against", url], folder.path, env);
}

it("shows the live counters of a Worker, and counts nothing", async () => {
  const headers = { "cf-connecting-ip": "203.0.113.7" };
  for (const status of [200, 200])
    expect((await send(worker.url, "/login", { headers })).status).toBe(status);
  for (let repeated = 0; repeated < 3; repeated++) {
    const run = await against(worker.url.href, "/login", "--ip", "203.0.113.7");
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toMatch(
      /^✗ Limited \(429\): GET .*\/login\. The rule login has 0 of 2 \(login\) left, and the\s+request\s+costs 1\./,
    );
    expect(run.stdout).toMatch(/^ {4}login +2 +2 +1 +0 /m);
    expect(run.stdout).toMatch(/^ {4}all +100 +2 +1 +98 /m);
    expect(run.stdout).toMatch(/^ {4}ban +begins, until /m);
    expect(run.stdout).toContain("so that of --against was taken: ");
  }
  const other = await against(
    worker.url.href,
    "https://example.com/",
    "--ip",
    "203.0.113.8",
    "--json",
  );
  const { outcome, rules }: Explanation = JSON.parse(other.stdout);
  expect(outcome).toBe("allowed");
  expect(rules).toMatchObject([
    { applies: false },
    { applies: true, counters: [{ count: 0, countAfter: 1 }] },
  ]);
});

it("shows the ban of a client", async () => {
  const headers = { "cf-connecting-ip": "203.0.113.9" };
  for (const status of [200, 200, 429]) {
    expect((await send(worker.url, "/login", { headers })).status).toBe(status);
  }
  const { stdout } = await against(worker.url.href, "/login", "--ip", "203.0.113.9");
  expect(stdout).toMatch(/The rule login has banned the client for another (?:2h|1h 59m)\./);
  expect(stdout).toMatch(/^ {4}ban +banned for another /m);
});

it("refuses a request that the Worker refuses", async () => {
  const run = await against(worker.url.href, `https://example.com/${"a".repeat(20_000)}`);
  expect(run).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^url/) });
});

const EXPLANATION: Explanation = {
  outcome: "limited",
  request: {
    method: "GET",
    sentMethod: "HEAD",
    isPreflight: false,
    host: "api.example.com",
    path: "/a",
    variants: ["/a", "/a/b"],
    isUnambiguous: false,
    client: "203.0.113.7",
  },
  rules: [
    {
      rule: "login",
      applies: true,
      why: "It matches. An override blocks the client.",
      mode: "enforce",
      conditions: [],
      key: [],
      client: "J2rAWY1vmcsYy6tNd_0bxQ",
      tier: "gold",
      cost: 3,
      costSource: "the header content-length",
      exceeds: true,
      override: {
        rule: "login",
        client: "J2rAWY1vmcsYy6tNd_0bxQ",
        effect: { kind: "blocked" },
        setAt: 0,
        expiresAt: Date.UTC(2026, 10, 24),
        by: "ops",
        reason: "Ticket \u001b[31m4711",
      },
    },
  ],
  response: {
    status: 429,
    headers: [["retry-after", "60"]],
    body: "Too many\nrequests",
    originHeaders: [["weir-quota", "1"]],
  },
  storeFailure: "timeout, no answer",
};

it("shows open requests", async () => {
  const quota = {
    limit: 4,
    windowMs: 300_000,
    resetMs: 1000,
    resetAt: 1,
    concurrent: true,
  } as const;
  const rest = { retryAfterMs: 1000, reservationDelayMs: 0 };
  const counter = { policy: "login/concurrent", limit: 4, capacity: 4, count: 4, cost: 1 };
  const [rule] = EXPLANATION.rules as [ExplainedRule];
  const { override: _, ...login } = rule;
  const shown: ExplainedRule = {
    ...login,
    quotas: [{ ...quota, ...rest, policy: "login/concurrent", remaining: 0, violated: true }],
    counters: [{ ...counter, concurrent: true, windowStart: 0, windowEnd: 1000, storedKey: "k" }],
  };
  await using api = await startFakeApi({ "POST explain": { ...EXPLANATION, rules: [shown] } });
  const { stdout } = await against(api.url, "/a");
  expect(stdout).toMatch(/The rule login has 4 of 4 slots taken\s+\(login\/concurrent\)\./);
  expect(stdout).toMatch(/^ {4}login\/concurrent +4 +4 +1 +0 +counts open requests$/m);
});

it("shows how long requests may wait", async () => {
  const [rule] = EXPLANATION.rules as [ExplainedRule];
  const rules = [{ ...rule, exceeds: false, waitMs: 2000 }];
  const allowed = { ...EXPLANATION, outcome: "allowed", response: { headers: [] } };
  await using api = await startFakeApi({ "POST explain": { ...allowed, rules } });
  const { stdout } = await against(api.url, "/a");
  expect(stdout).toMatch(/^✓ Allowed: /);
  expect(stdout).toMatch(/^ {4}wait +up to 2s$/m);
});

it("shows that a request may pass ahead of the store", async () => {
  const [rule] = EXPLANATION.rules as [ExplainedRule];
  const rules = [{ ...rule, async: true }];
  await using api = await startFakeApi({ "POST explain": { ...EXPLANATION, rules } });
  const { stdout } = await against(api.url, "/a");
  const text =
    "may pass before the store has decided: over the limit, once for each isolate and window";
  expect(stdout).toContain(`\n    async       ${text}\n`);
});

it("shows that a request waits for its turn before it is denied", async () => {
  await using api = await startFakeApi({ "POST explain": { ...EXPLANATION, waitMs: 30_000 } });
  const { stdout } = await against(api.url, "/a");
  expect(stdout).toMatch(
    /^\? Waits up to 30s for its turn, and is limited \(429\) only after that: /,
  );
  expect(stdout).toContain("✗ login lets the request wait for its turn");
});

it("shows overrides, tiers, variants and failures of the store", async () => {
  await using api = await startFakeApi({ "POST explain": EXPLANATION });
  const { stdout } = await against(api.url, "HEAD", "/a", "-H", "x-a: 1", "--cf", "country=DE");
  await expect(stdout).toMatchFileSnapshot("explanation.txt");
  expect(stdout).not.toContain("\u001b");
  expect(api.sent).toMatchObject([
    {
      method: "POST",
      path: "explain",
      authorization: `Bearer ${TOKEN}`,
      body: {
        method: "HEAD",
        url: "https://127.0.0.1/a",
        headers: { "x-a": "1" },
        cf: { country: "DE" },
      },
    },
  ]);
});

it("sends the body to the Worker, and shows why the Worker refuses it", async () => {
  const explain = (length: number) =>
    against(worker.url.href, "https://api.example.com/login", "-d", "a".repeat(length));
  expect(await explain(1)).toMatchObject({ code: 0, stderr: "" });
  expect(await explain(65_500)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("A body has at most 64 KiB"),
  });
});

it.each<[string, object, readonly string[], number, RegExp]>([
  ["no Weir", { status: 404, text: "not found" }, ["/a"], 2, /3\. --against leads to the Worker/],
  [
    "a redirect",
    { status: 302, headers: { location: "https://example.com" }, text: "" },
    ["/a"],
    2,
    /with --against/,
  ],
  ["rules that are no list", { ...EXPLANATION, rules: 7 }, ["/a"], 2, /another form than expected/],
  [
    "a time that is no time",
    { ...EXPLANATION, rules: [{ ...EXPLANATION.rules[0], newBan: { until: "x" } }] },
    ["/a"],
    2,
    /another form/,
  ],
  ["a failed store", problem(503, "The store failed."), ["/a"], 2, /^The store failed/],
  ["a refusal", problem(400, "url must be shorter."), ["/a"], 1, /^url must be shorter/],
  [
    "--at-time",
    EXPLANATION,
    ["/a", "--at-time", "2026-11-23T08:00:00Z"],
    1,
    /only without --against/,
  ],
])("exits with 1 or 2 for %s", async (_, answer, args, code, message) => {
  await using api = await startFakeApi({ "POST explain": answer });
  const run = await against(api.url, ...args);
  expect(run).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
});

it.each([
  ["no URL", "api.example.com", 1, /--against must be the URL of a Worker/],
  ["http to another machine", "http://api.example.com", 2, /The token was not sent/],
])("exits with 1 or 2 for %s", async (_, url, code, message) => {
  const run = await against(url, "/a");
  expect(run).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
});

it("exits with 2 if nothing listens at the address", async () => {
  const api = await startFakeApi({});
  await api[Symbol.asyncDispose]();
  const run = await against(api.url, "/a", "--json");
  expect(run).toMatchObject({ code: 2, stderr: "" });
  const { error } = JSON.parse(run.stdout);
  expect(error).toMatch(/deployed one: --against https:/);
});

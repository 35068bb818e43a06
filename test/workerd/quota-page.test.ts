import { createExecutionContext, env } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute. */
const NOW = 1_700_000_100_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const RULES: ConfigInput["rules"] = [
  {
    name: "all",
    limits: [
      { limit: 10, window: "1m" },
      { limit: 100, window: "1h" },
    ],
  },
  {
    name: "posts",
    match: { methods: ["POST"], paths: ["/posts/*"] },
    limit: 5,
    window: "1h",
    cost: 2,
  },
  { name: "model", match: { paths: ["/model"] }, concurrent: 4 },
];

/** Creates a Worker. Returns functions that send it a request, and that read the caller's quotas. */
function worker(
  rules: ConfigInput["rules"] = RULES,
  more: Partial<ConfigInput> = {},
  bindings = {},
) {
  const origin = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok"));
  const config = { store: "memory", quotaPath: "/rate-limit", ...more } as const;
  const { fetch } = weir(defineConfig({ ...config, rules }));
  const send = (path: string, init: RequestInit = {}, client = "203.0.113.7") => {
    const headers = { "cf-connecting-ip": client, ...init.headers };
    const request = new Request(`https://api.example.com${path}`, { ...init, headers });
    return fetch(request as never, bindings, createExecutionContext());
  };
  const read = async (init: RequestInit = {}, client?: string) => {
    const answer = await send("/rate-limit", init, client);
    return ((await answer.json()) as { limits: unknown }).limits;
  };
  return { send, read, origin };
}

describe("quotaPath", () => {
  it("answers with the caller's state under every rule that counts it on some path, and charges nothing", async () => {
    const { send, read, origin } = worker();
    await send("/posts/1", { method: "POST", body: "x" });
    await send("/model");
    const limits = [
      { policy: "all/1m", limit: 10, used: 2, remaining: 8, window: 60, reset: 60 },
      { policy: "all/1h", limit: 100, used: 2, remaining: 98, window: 3600, reset: 2700 },
      { policy: "posts", limit: 5, used: 2, remaining: 3, window: 3600, reset: 2700 },
      {
        policy: "model",
        limit: 4,
        used: expect.any(Number),
        remaining: expect.any(Number),
        concurrent: true,
      },
    ];
    expect(await read()).toEqual(limits);
    expect(await read()).toEqual(limits);
    expect(await read({}, "203.0.113.8")).toMatchObject([
      { used: 0 },
      { used: 0 },
      { used: 0 },
      { used: 0 },
    ]);
    expect(origin).toHaveBeenCalledTimes(2);
  });

  it("says when a client that is over a limit may retry", async () => {
    const { send, read } = worker([{ name: "few", limit: 1, window: "1m", ban: "5m" }]);
    await send("/");
    expect(await read()).toMatchObject([{ remaining: 0, reset: 60, retryAfter: 60 }]);
    await send("/");
    expect(await read()).toMatchObject([{ remaining: 0, retryAfter: 300 }]);
  });

  it("has the fields of a denial: RateLimit, no-store and CORS", async () => {
    const { send } = worker();
    const { status, headers } = await send("/rate-limit", {
      headers: { origin: "https://app.example.com" },
    });
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "application/json",
      "cache-control": "no-store",
      "access-control-allow-origin": "https://app.example.com",
      "ratelimit-policy":
        '"all/1m";q=10;w=60, "all/1h";q=100;w=3600, "posts";q=5;w=3600, "model";q=4;qu="concurrent-requests"',
      ratelimit: '"all/1m";r=10;t=60, "all/1h";r=100;t=2700, "posts";r=5;t=2700, "model";r=4',
    });
    const head = await send("/rate-limit", { method: "HEAD" });
    expect([head.status, head.headers.has("ratelimit"), await head.text()]).toEqual([
      200,
      true,
      "",
    ]);
  });

  it("shows no rule in shadow mode, none that the client does not match, and none whose client depends on the path", async () => {
    const { read } = worker([
      { name: "secret", limit: 1, window: "1m", mode: "shadow" },
      { name: "partners", match: { headers: { "x-partner": true } }, limit: 1, window: "1m" },
      { name: "elsewhere", match: { hosts: ["other.example.com"] }, limit: 1, window: "1m" },
      { name: "each", match: { paths: ["/users/:id"] }, key: "param:id", limit: 1, window: "1m" },
      { name: "path", key: ["ip", "path"], limit: 1, window: "1m" },
      { name: "asked", key: "query:q", limit: 1, window: "1m" },
      { name: "shards", limit: 9, window: "1m", shards: 3 },
      { name: "exempt", exempt: { ips: ["203.0.113.7"] }, limit: 1, window: "1m" },
      { name: "export", match: { query: { export: true } }, limit: 1, window: "1m" },
      { name: "mostly", match: { except: { paths: ["/health"] } }, limit: 1, window: "1m" },
      {
        name: "foreign",
        match: { except: { headers: { "x-inside": true } } },
        limit: 1,
        window: "1m",
      },
    ]);
    expect(await read()).toMatchObject([
      { policy: "export" },
      { policy: "mostly" },
      { policy: "foreign" },
    ]);
    expect(await read({ headers: { "x-partner": "1", "x-inside": "1" } })).toMatchObject([
      { policy: "partners" },
      { policy: "export" },
      { policy: "mostly" },
    ]);
    const { read: readInShadow } = worker(RULES, {}, { WEIR_MODE: "shadow" });
    expect(await readInShadow()).toEqual([]);
  });

  it("has the limits of the client's tier, and calls no function for a cost", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 50, window: "1h" } } } as const;
    const costs = { depth: vi.fn(() => 3) };
    const { read } = worker(
      [{ name: "api", limit: 5, window: "1m", tiers, cost: "custom:depth" }],
      { custom: { costs } },
    );
    expect(await read({ headers: { "x-plan": "pro" } })).toMatchObject([
      { limit: 50, window: 3600 },
    ]);
    expect(await read()).toMatchObject([{ limit: 5, window: 60 }]);
    expect(costs.depth).not.toHaveBeenCalled();
  });

  it.each([
    ["/rate-limit?x=1", 200, 0],
    ["/RATE-LIMIT/", 200, 0],
    ["/%72ate-limit", 200, 0],
    ["/rate-limit/more", 200, 1],
    ["/x/../rate-limit", 200, 0],
  ])("answers the same path as rules match: %s", async (path, status, forwarded) => {
    const { send, origin } = worker();
    expect((await send(path)).status).toBe(status);
    expect(origin).toHaveBeenCalledTimes(forwarded);
  });

  it("forwards other methods, and every request if it is not configured or Weir is off", async () => {
    const { send, origin } = worker();
    await send("/rate-limit", { method: "POST", body: "x" });
    expect(origin).toHaveBeenCalledTimes(1);
    const others = [
      worker(RULES, { quotaPath: undefined }),
      worker(RULES, {}, { WEIR_MODE: "off" }),
    ];
    for (const other of others) await other.send("/rate-limit");
    expect(origin).toHaveBeenCalledTimes(3);
  });

  it("answers an address at most 60 times a minute, and other addresses still", async () => {
    const { send } = worker();
    const statuses: number[] = [];
    for (let at = 0; at < 61; at++) statuses.push((await send("/rate-limit")).status);
    expect(statuses).toEqual([...Array(60).fill(200), 429]);
    vi.setSystemTime(NOW + 20_000);
    const denied = await send("/rate-limit");
    expect(denied.headers.get("retry-after")).toBe("40");
    expect((await send("/rate-limit", {}, "203.0.113.8")).status).toBe(200);
    vi.setSystemTime(NOW + 60_000);
    expect((await send("/rate-limit")).status).toBe(200);
  });

  it("leaves the leases and the remembered denials of a shared counter alone", async () => {
    const counters = env.COUNTERS as DurableObjectNamespace;
    let calls = 0;
    let isAway = false;
    const counting = new Proxy(counters, {
      get: (target, name) => {
        if (name !== "getByName") return Reflect.get(target, name);
        return (id: string) => {
          calls += 1;
          if (isAway) throw new Error("away");
          return target.getByName(id);
        };
      },
    });
    const rules = [{ name: "all", key: "global", limit: 1000, window: "1h" }] as const;
    const prefix = crypto.randomUUID();
    const { send, read } = worker(
      rules,
      { store: "durable-object", prefix },
      { COUNTERS: counting },
    );
    for (let sent = 0; sent < 60; sent++) await send("/");
    const callsOf = async (action: () => Promise<unknown>) => {
      const before = calls;
      await action();
      return calls - before;
    };
    isAway = true;
    for (let at = 0; at < 3; at++) expect((await send("/rate-limit")).status).toBe(503);
    isAway = false;
    expect(await callsOf(() => send("/rate-limit", {}, "203.0.113.8"))).toBe(1);
    expect(await callsOf(() => send("/"))).toBe(0);
    expect(await read({}, "203.0.113.8")).toMatchObject([{ used: 61, remaining: 939 }]);
  });

  it("shows at most 100 rules, and no header fields for more than 20 quotas", async () => {
    const rules = Array.from({ length: 150 }, (_, at) => {
      return { name: `rule${at}`, match: { paths: [`/p${at}`] }, limit: 5, window: "1m" };
    });
    const { send } = worker(rules);
    const answer = await send("/rate-limit");
    expect(((await answer.json()) as { limits: unknown[] }).limits).toHaveLength(100);
    expect(answer.headers.has("ratelimit")).toBe(false);
  });

  it("answers 503 if the store cannot be read", async () => {
    const env = {
      UPSTASH_REDIS_REST_URL: "https://redis.example.com",
      UPSTASH_REDIS_REST_TOKEN: "x",
    };
    const { send, origin } = worker(RULES, { store: "upstash" }, env);
    origin.mockImplementation(() => Promise.reject(new Error("no connection")));
    const answer = await send("/rate-limit");
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toMatch(/^([3-9]|10)$/);
  });
});

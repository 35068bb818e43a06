import { createExecutionContext, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute. */
const NOW = 1_700_000_100_000;
const ADDRESS = "203.0.113.7";
const PATH = "/rate-limit";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Returns the path of a read that describes a request. */
function about(path: string, method?: string): string {
  return `${PATH}?${new URLSearchParams({ path, ...(method && { method }) })}`;
}

interface Answered {
  readonly allowed: boolean;
  readonly retryAfter?: number;
  readonly limits: readonly { readonly policy: string; readonly remaining: number }[];
}

/** Creates a Worker. Returns functions that send it a request of a client, and that read the client's quotas. */
function worker(rules: readonly RuleInput[], more: Partial<ConfigInput> = {}, bindings = {}) {
  const next = vi.fn(async () => new Response("ok"));
  const config = defineConfig({
    store: "memory",
    quotaPath: PATH,
    prefix: crypto.randomUUID(),
    timeoutMs: 10_000,
    ...more,
    rules: rules as ConfigInput["rules"],
  });
  const { fetch } = weir(config);
  const send = (path: string, init: RequestInit = {}, client = ADDRESS) => {
    const headers = { "cf-connecting-ip": client, ...init.headers };
    const request = new Request(`https://api.example.com${path}`, { ...init, headers });
    return fetch(request as never, bindings, createExecutionContext(), next);
  };
  const read = async (path = PATH, init: RequestInit = {}, client?: string) =>
    (await (await send(path, init, client)).json()) as Answered;
  const policies = async (path?: string, init?: RequestInit) =>
    (await read(path, init)).limits.map(({ policy }) => policy);
  return { config, send, read, policies, next };
}

const rule = (name: string, more: Partial<RuleInput> = {}) =>
  ({ name, limit: 5, window: "1m", ...more }) as RuleInput;

describe("a read of quotaPath", () => {
  const RULES = [
    {
      name: "all",
      limits: [
        { limit: 10, window: "1m" },
        { limit: 100, window: "1h" },
      ],
    },
    rule("posts", { match: { methods: ["POST"], paths: ["/posts/*"] }, window: "1h", cost: 2 }),
    { name: "model", match: { paths: ["/model"] }, concurrent: 4 },
  ] as readonly RuleInput[];

  it("finds what the described request would find, and charges nothing", async () => {
    const { send, read, next } = worker(RULES);
    const all = (used: number) => [
      { policy: "all/1m", limit: 10, remaining: 10 - used, window: 60, reset: 60 },
      { policy: "all/1h", limit: 100, remaining: 100 - used, window: 3600, reset: 2700 },
    ];
    await send("/posts/1", { method: "POST", body: "x" });
    const posts = { policy: "posts", limit: 5, remaining: 3, window: 3600, reset: 2700 };
    const model = { policy: "model", limit: 4, remaining: 4, concurrent: true };
    for (let at = 0; at < 3; at++) {
      expect(await read(about("/posts/2", "post"))).toEqual({
        allowed: true,
        limits: [...all(1), posts],
      });
      expect(await read(about("/posts/2"))).toEqual({ allowed: true, limits: all(1) });
      expect(await read()).toEqual({ allowed: true, limits: all(1) });
      expect(await read(about("/model"))).toEqual({ allowed: true, limits: [...all(1), model] });
    }
    expect((await read(PATH, {}, "203.0.113.8")).limits).toEqual(all(0));
    expect(next).toHaveBeenCalledTimes(1);
  });

  it.each(["/search?q=1", "//search", "/x/../search", "/%73earch", "/SEARCH/", "\\search", "/a/b"])(
    "shows the same header fields as the request: %s",
    async (path) => {
      const rules = [
        rule("search", { match: { paths: ["/search"] } }),
        rule("asked", { match: { query: { q: true } }, key: ["ip", "query:q"] }),
        rule("each", { match: { paths: ["/:one/:two"] }, key: "param:one" }),
        rule("path", { key: ["ip", "path"] }),
      ];
      const { send } = worker(rules);
      const described = `/${path.replace(/^[/\\]/, "")}`;
      const read = await send(about(described), { method: "HEAD" });
      const sent = await send(described);
      const withoutUse = sent.headers.get("ratelimit")?.replaceAll("r=4", "r=5");
      expect(read.headers.get("ratelimit")).toBe(withoutUse);
      expect(read.headers.get("ratelimit-policy")).toBe(sent.headers.get("ratelimit-policy"));
      expect(await read.text()).toBe("");
    },
  );

  it.each(["/caf%C3%A9", "/a%2Fb", "/a/%2e%2e/b", "/x;y/b"])(
    "finds what the request would find in a Hono app: %s",
    async (path) => {
      const rules = [
        rule("path", { key: ["ip", "path"] }),
        rule("b", { match: { paths: ["/b"] } }),
      ];
      const { config } = worker(rules);
      const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("app"));
      const headers = { "cf-connecting-ip": ADDRESS };
      const send = (target: string) =>
        app.request(`https://api.example.com${target}`, { headers }, {}, createExecutionContext());
      const sent = await send(path);
      expect(await sent.text()).toBe("app");
      const read = await send(about(path));
      expect(read.headers.get("ratelimit")).toBe(sent.headers.get("ratelimit"));
    },
  );

  it("shows the rules for every path, if it names no path", async () => {
    const { policies } = worker([
      rule("shadow", { mode: "shadow" }),
      rule("partners", { match: { headers: { "x-partner": true } } }),
      rule("elsewhere", { match: { hosts: ["other.example.com"] } }),
      rule("some", { match: { paths: ["/users/:id"] } }),
      rule("path", { key: ["ip", "path"] }),
      rule("posts", { match: { methods: ["POST"] } }),
      rule("shards", { limit: 9, shards: 3 }),
      rule("exempt", { exempt: { ips: [ADDRESS] } }),
      rule("programs", { for: "programs" }),
      rule("mostly", { match: { except: { paths: ["/health"] } } }),
      rule("over", { mode: "mark" }),
    ]);
    expect(await policies()).toEqual(["shards", "mostly", "over"]);
    const post = await policies(`${PATH}?method=POST`, { headers: { "x-partner": "1" } });
    expect(post).toEqual(["partners", "posts", "shards", "mostly", "over"]);
    expect(await policies(about(PATH))).toEqual([]);
    const inShadow = worker([rule("all")], {}, { WEIR_MODE: "shadow" });
    expect(await inShadow.read()).toEqual({ allowed: true, limits: [] });
  });

  it("says whether the request would pass, and when", async () => {
    const { send, read } = worker([rule("few", { limit: 1, ban: "5m" })]);
    await send("/");
    const few = { policy: "few", limit: 1, remaining: 0, window: 60, reset: 60 };
    const full = { allowed: false, retryAfter: 60, limits: [{ ...few, retryAfter: 60 }] };
    for (let at = 0; at < 3; at++) expect(await read()).toEqual(full);
    await send("/");
    const banned = { allowed: false, retryAfter: 300, limits: [{ ...few, retryAfter: 300 }] };
    expect(await read()).toEqual(banned);
  });

  it.each<Partial<RuleInput>>([{ limit: 0 }, { cost: 6 }, { limit: 9, shards: 3, cost: 4 }])(
    "names no time for a request that never passes: %j",
    async (more) => {
      const { read } = worker([rule("never", more)]);
      const { limits, ...answer } = await read();
      expect(answer).toEqual({ allowed: false });
      expect(limits).toMatchObject([{ policy: "never" }]);
      expect(limits[0]).not.toHaveProperty("retryAfter");
    },
  );

  it.each(["5m", undefined])(
    "shows rules with the mode mark during a denial (ban: %s)",
    async (ban) => {
      const { send, read } = worker([
        rule("few", { limit: 1, ...(ban && { ban }) }),
        rule("plan", { mode: "mark", limit: 1 }),
      ]);
      for (let sent = 0; sent < 2; sent++) await send("/");
      expect(await read()).toMatchObject({
        allowed: false,
        limits: [
          { policy: "few", remaining: 0 },
          { policy: "plan", remaining: 0 },
        ],
      });
    },
  );

  it("has the limits of the client's tier, and calls the functions of keys only", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 50, window: "1h" } } } as const;
    const costs = { depth: vi.fn((request: Request) => request.json()) };
    const keys = { user: vi.fn((request: Request) => new URL(request.url).pathname) };
    const { read } = worker(
      [
        rule("api", { tiers, cost: "custom:depth" }),
        rule("user", { key: "custom:user", cost: { from: "body:bytes", max: 9 } }),
      ],
      { custom: { costs: costs as never, keys } },
    );
    const headers = { "x-plan": "pro" };
    expect(await read(about("/a", "POST"), { headers })).toMatchObject({
      allowed: true,
      limits: [{ limit: 50, window: 3600 }, { policy: "user" }],
    });
    expect((await read()).limits).toMatchObject([{ limit: 5, window: 60 }, {}]);
    expect(keys.user.mock.results.map(({ value }) => value)).toEqual(["/a", PATH]);
    expect(costs.depth).not.toHaveBeenCalled();
  });

  it("has the caller's own cookies and Cloudflare's data", async () => {
    const rules = [
      rule("session", { key: "cookie:session" }),
      rule("german", { match: { countries: ["DE"] } }),
    ];
    const { config } = worker(rules);
    const { fetch } = weir(config);
    const headers = { "cf-connecting-ip": ADDRESS, cookie: "session=1" };
    const send = (path: string, country: string) => {
      const request = new Request(`https://api.example.com${path}`, { headers });
      Object.defineProperty(request, "cf", { value: { country }, enumerable: true });
      return fetch(request, {}, createExecutionContext(), () => new Response("ok"));
    };
    await send("/", "DE");
    const limits = [{ policy: "session", remaining: 4 }];
    expect(await (await send(PATH, "FR")).json()).toMatchObject({ limits });
    const both = [...limits, { policy: "german", remaining: 4 }];
    expect(await (await send(about("/x"), "DE")).json()).toMatchObject({ limits: both });
  });

  it.each([
    ["a path without a slash", "path=search"],
    ["an empty path", "path="],
    ["a URL", "path=https://other.example.com/"],
    ["a path that is too long", `path=/${"%2561".repeat(2000)}`],
    ["a method with a blank", "method=NO%20METHOD", "method must be a method"],
  ])(
    "is refused if it describes no request: %s",
    async (_, query, allowed = "path must begin with a slash") => {
      const { send } = worker([rule("all")]);
      const answer = await send(`${PATH}?${query}`, { headers: { origin: "https://a.example" } });
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([
        400,
        null,
      ]);
      expect(await answer.json()).toMatchObject({
        detail: expect.stringContaining(allowed),
      });
    },
  );

  it("lets no page of another origin read it, and no cache store it", async () => {
    const { send } = worker([rule("all")]);
    const headers = { origin: "https://app.example.com" };
    for (let at = 0; at < 61; at++) {
      const answer = await send(PATH, { headers });
      expect(answer.status).toBe(at < 60 ? 200 : 429);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-"))).toEqual([]);
    }
  });

  it.each(["none", "legacy"] as const)(
    "names no rule, because responses name none: headers %s",
    async (headers) => {
      const { send } = worker([rule("few", { limit: 1 }), rule("over", { mode: "mark" })], {
        headers,
      });
      for (const body of [{ allowed: true }, { allowed: false, retryAfter: 60 }]) {
        const answer = await send(PATH);
        expect(await answer.json()).toEqual({ ...body, limits: [] });
        const fields = JSON.stringify([...answer.headers]);
        expect(fields).not.toMatch(/few|over/);
        expect(answer.headers.has("x-ratelimit-limit")).toBe(headers === "legacy");
        await send("/");
      }
    },
  );
});

describe("the number of reads", () => {
  it("is at most 60 a minute for an address, whatever key it has and whatever it finds", async () => {
    const { send } = worker([rule("keys", { key: "header:x-api-key" })]);
    const statuses: number[] = [];
    for (let at = 0; at < 61; at++) {
      const path = at % 2 === 0 ? PATH : `${PATH}?path=none`;
      const headers = { "x-api-key": crypto.randomUUID() };
      statuses.push((await send(path, { headers })).status);
    }
    expect(statuses).toEqual([...Array.from({ length: 60 }, (_, at) => [200, 400][at % 2]), 429]);
    vi.setSystemTime(NOW + 20_000);
    const denied = await send(PATH);
    expect([denied.status, denied.headers.get("retry-after")]).toEqual([429, "40"]);
    expect((await send(PATH, {}, "203.0.113.8")).status).toBe(200);
    vi.setSystemTime(NOW + 60_000);
    expect((await send(PATH)).status).toBe(200);
    vi.setSystemTime(NOW - 3_600_000);
    expect((await send(PATH)).status).toBe(200);
  });

  it("lets an address read for the first time after 20,000 made-up networks", async () => {
    const { send } = worker([rule("all")]);
    for (let at = 0; at < 20_100; at++) {
      const group = (at % 65_536).toString(16);
      const { status } = await send(PATH, {}, `2001:db8:1:${group}::1`);
      if (status !== 200) expect.unreachable(`network ${at} got ${status}`);
    }
    expect((await send(PATH, {}, "203.0.113.99")).status).toBe(200);
  });
});

describe("other requests", () => {
  it.each([
    [`${PATH}?x=1`, 0],
    ["/RATE-LIMIT/", 0],
    ["/%72ate-limit", 0],
    ["/rate-limit/more", 1],
    ["/x/../rate-limit", 0],
  ])("are told apart by the same path as rules match: %s", async (path, forwarded) => {
    const { send, next } = worker([rule("all")]);
    expect((await send(path)).status).toBe(200);
    expect(next).toHaveBeenCalledTimes(forwarded);
  });

  it("are forwarded: other methods, and all if it is not configured or Weir is off", async () => {
    const workers = [
      worker([rule("all")]),
      worker([rule("all")], { quotaPath: undefined }),
      worker([rule("all")], {}, { WEIR_MODE: "off" }),
    ];
    await workers[0]?.send(PATH, { method: "POST", body: "x" });
    for (const other of workers.slice(1)) await other.send(PATH);
    for (const { next } of workers) expect(next).toHaveBeenCalledTimes(1);
  });
});

const redis = inject("redis");

function isStored(name: string): Promise<boolean> {
  return runInDurableObject(env.COUNTERS.getByName(name), async (_, { storage }) => {
    const tables = storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'rows'").toArray();
    return tables.length > 0 || (await storage.getAlarm()) !== null;
  });
}

/** The stores with calls, the names of the objects called so far, and a function that returns their number so far. */
const STORES = {
  upstash: () => {
    const fetches = vi.spyOn(globalThis, "fetch");
    const bindings = {
      UPSTASH_REDIS_REST_URL: redis.restUrl,
      UPSTASH_REDIS_REST_TOKEN: redis.restToken,
    };
    return { bindings, calls: () => fetches.mock.calls.length, names: [] };
  },
  "durable-object": () => {
    const names: string[] = [];
    const getByName = (name: string) => {
      names.push(name);
      return env.COUNTERS.getByName(name);
    };
    return { bindings: { COUNTERS: { getByName } }, calls: () => names.length, names };
  },
} as const;

describe.each(["upstash", "durable-object"] as const)("a read over %s", (store) => {
  /** Creates a Worker that counts its calls to the store. */
  function counting(rules: readonly RuleInput[], more: Partial<ConfigInput> = {}) {
    const { bindings, calls, names } = STORES[store]();
    const made = worker(rules, { store, ...more }, bindings);
    const callsOf = async (action: () => Promise<unknown>) => {
      const before = calls();
      await action();
      return calls() - before;
    };
    return { ...made, callsOf, names };
  }

  it.each(["5m", undefined])(
    "makes no call for a client that is denied from memory (ban: %s)",
    async (ban) => {
      const { send, read, callsOf } = counting([
        rule("few", { limit: 1, ...(ban && { ban }) }),
        rule("keys", { key: "header:x-api-key" }),
      ]);
      for (let sent = 0; sent < 3; sent++) await send("/");
      const reads = async () => {
        for (let at = 0; at < 20; at++) {
          const headers = { "x-api-key": crypto.randomUUID() };
          const { limits, ...answer } = await read(about("/"), { headers });
          expect(answer).toEqual({ allowed: false, retryAfter: expect.any(Number) });
          expect(limits.map(({ policy }) => policy)).toEqual(["few"]);
        }
      };
      expect(await callsOf(reads)).toBe(0);
    },
  );

  it("makes no more calls than the request", async () => {
    const rules = Array.from({ length: 30 }, (_, at) =>
      rule(`rule${at}`, { window: undefined, limit: undefined, limits: LIMITS }),
    );
    const { send, callsOf } = counting([...rules, rule("mark", { mode: "mark" })]);
    expect(await callsOf(() => send(PATH))).toBe(1);
    expect(await callsOf(() => send("/"))).toBe(1);
    expect(await callsOf(() => send(about("/")))).toBe(1);
  });

  it("makes no call for a client whose requests need none, and shows what they show", async () => {
    const { send, read, callsOf } = counting([rule("all", { key: "global", limit: 1000 })]);
    for (let sent = 0; sent < 60; sent++) await send("/");
    let answer: Answered | undefined;
    expect(await callsOf(async () => (answer = await read()))).toBe(0);
    expect(answer?.limits).toMatchObject([{ remaining: 940 }]);
    expect(await callsOf(() => send("/"))).toBe(0);
  });

  it("shows rules with the mode mark while the client is denied from memory, in one call", async () => {
    const { send, read, callsOf } = counting([
      rule("few", { limit: 1, ban: "5m" }),
      rule("plan", { mode: "mark" }),
    ]);
    for (let sent = 0; sent < 3; sent++) await send("/");
    let answer: Answered | undefined;
    expect(await callsOf(async () => (answer = await read()))).toBe(1);
    expect(answer?.limits).toMatchObject([
      { policy: "few", remaining: 0 },
      // The store has denied one request, which counts here too.
      { policy: "plan", remaining: 3 },
    ]);
  });

  it("begins no ban, takes no slot and stores nothing for a made-up key", async () => {
    const key = "header:x-api-key";
    const { send, read, names } = counting([
      rule("few", { limit: 1, ban: "5m", key }),
      { name: "slots", key, concurrent: 1 },
      rule("ip", { match: { paths: ["/both"] } }),
    ]);
    for (let at = 0; at < 20; at++) {
      const headers = { "x-api-key": `made-up-${at}` };
      expect((await read(at % 2 ? PATH : about("/both"), { headers })).allowed).toBe(true);
    }
    const headers = { "x-api-key": "own" };
    for (let at = 0; at < 5; at++) await read(PATH, { headers });
    expect((await send("/", { headers })).status).toBe(200);
    for (let at = 0; at < 5; at++) expect((await read(PATH, { headers })).allowed).toBe(false);
    const stored = await Promise.all([...new Set(names)].map(isStored));
    // Only the counters of the client that has sent a request are stored.
    expect(stored.filter(Boolean).length).toBe(store === "upstash" ? 0 : 1);
  });

  it("is answered with 503 and no Access-Control-Allow-Origin if the store fails", async () => {
    const failing = {
      UPSTASH_REDIS_REST_URL: "https://redis.example.com",
      UPSTASH_REDIS_REST_TOKEN: "x",
      COUNTERS: {
        getByName() {
          throw new Error("away");
        },
      },
    };
    vi.spyOn(console, "error").mockImplementation(() => {});
    vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no connection"));
    for (const onError of ["open", "closed", "local"] as const) {
      const { send } = worker([rule("all", { onError })], { store }, failing);
      const answer = await send(PATH, { headers: { origin: "https://app.example.com" } });
      const { headers } = answer;
      expect([answer.status, headers.get("access-control-allow-origin")]).toEqual([503, null]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    }
  });
});

const LIMITS = [
  { limit: 10, window: "1m" },
  { limit: 100, window: "1h" },
] as const;

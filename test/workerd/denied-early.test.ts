import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { sign } from "hono/utils/jwt/jwt";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";
import { identityOfLimitKey } from "../../src/request/limit-key.ts";

const HOUR = 3_600_000;
const SECRET = "a secret of 32 bytes or of more";
const ADDRESS = "203.0.113.7";
const redis = inject("redis");
const STORES = {
  memory: { store: "memory", bindings: {} },
  "Durable Objects": { store: "durable-object", bindings: { COUNTERS: env.COUNTERS } },
  Redis: {
    store: "upstash",
    bindings: {
      UPSTASH_REDIS_REST_URL: redis.restUrl,
      UPSTASH_REDIS_REST_TOKEN: redis.restToken,
    },
  },
} as const;

beforeEach(() => {
  // No window ends during a test.
  const now = Math.ceil(Date.now() / HOUR) * HOUR;
  vi.useFakeTimers({ toFake: ["Date"], now });
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

interface SetUp {
  readonly rules: readonly RuleInput[];
  readonly store?: keyof typeof STORES;
  readonly options?: Partial<ConfigInput>;
  readonly bindings?: object;
  readonly atLeast?: number;
}

/** Counts the calls of functions and the verified tokens, for requests in each of the ways into Weir. */
function setUp({ rules, store = "memory", options, bindings, atLeast }: SetUp) {
  const chosen = STORES[store];
  const calls = vi.fn();
  const read = async (request: Request) => {
    calls();
    return (await request.clone().text()).length;
  };
  const all = { ...chosen.bindings, JWT_SECRET: SECRET, ...bindings };
  const config = defineConfig({
    store: chosen.store,
    prefix: crypto.randomUUID(),
    jwt: { secret: "JWT_SECRET" },
    timeoutMs: 10_000,
    rules: rules as ConfigInput["rules"],
    custom: {
      keys: { tenant: async (request: Request) => String(await read(request)) },
      costs: { size: atLeast === undefined ? read : Object.assign(read, { atLeast }) },
    },
    ...options,
  });
  const { fetch } = weir(config);
  const app = new Hono();
  app.use(rateLimit(config));
  app.all("*", (c) => c.text("app"));
  const verified = vi.spyOn(crypto.subtle, "verify");
  async function send(way: "next" | "middleware" = "next", init: RequestInit = {}, key = "k") {
    const headers = { "cf-connecting-ip": ADDRESS, "x-api-key": key, ...init.headers };
    const request = new Request("https://api.example.com/", { ...init, headers });
    const ctx = createExecutionContext();
    const response = await (way === "next"
      ? fetch(request as never, all, ctx, () => new Response("app"))
      : app.fetch(request, all, ctx));
    return response.status;
  }
  return { config, send, calls, verified };
}

const ONE = { limit: 1, window: "1d" } as const;
const OWN = { name: "own", ...ONE } as const;
const post = (body: BodyInit = "text") => ({ method: "POST", body });
/** A body that never arrives. */
const stalled = () => post(new ReadableStream());

const OTHERS = {
  "a custom key": { name: "tenant", key: "custom:tenant", limit: 99, window: "1d" },
  "a custom cost": { name: "size", cost: "custom:size", limit: 9999, window: "1d" },
  "a custom reserve": {
    name: "reserve",
    cost: { reserve: "custom:size", settle: "header:x-cost" },
    limit: 9999,
    window: "1d",
  },
  "a custom tier": {
    name: "tier",
    limit: 99,
    window: "1d",
    tiers: { by: "custom:tenant", limits: { pro: { limit: 9, window: "1d" } } },
  },
  "a custom key in shadow mode": {
    name: "shadow",
    key: "custom:tenant",
    limit: 99,
    window: "1d",
    mode: "shadow",
  },
  "a custom key with the mode mark": {
    name: "mark",
    key: "custom:tenant",
    limit: 99,
    window: "1d",
    mode: "mark",
  },
} satisfies Record<string, RuleInput>;

describe("a client that is denied from memory", () => {
  describe.each(Object.keys(STORES) as (keyof typeof STORES)[])("over %s", (store) => {
    it.each(Object.keys(OTHERS) as (keyof typeof OTHERS)[])(
      "causes no call of a function: %s",
      async (other) => {
        for (const rules of [
          [OWN, OTHERS[other]],
          [OTHERS[other], OWN],
        ]) {
          const { send, calls } = setUp({ rules, store });
          expect(await send("next", post())).toBe(200);
          // The denial of this request is not in memory yet.
          expect(await send("next", post())).toBe(429);
          calls.mockClear();
          for (const way of ["next", "middleware"] as const) {
            for (let sent = 0; sent < 5; sent++) expect(await send(way, post())).toBe(429);
            expect(await send(way, stalled())).toBe(429);
          }
          expect(calls).not.toHaveBeenCalled();
        }
      },
    );
  });

  it("causes no verification of a token, unless the rule that denies needs it", async () => {
    const headers = { authorization: `Bearer ${await sign({ sub: "alice" }, SECRET)}` };
    const user = { name: "user", key: "jwt:sub", limit: 1, window: "1d" } as const;
    for (const other of [{ ...user, limit: 99 }, OTHERS["a custom cost"]]) {
      const { send, verified } = setUp({
        rules: [{ ...user, name: "first", limit: 99 }, OWN, other],
      });
      await send("next", { headers });
      await send("next", { headers });
      verified.mockClear();
      for (let sent = 0; sent < 100; sent++) expect(await send("next", { headers })).toBe(429);
      expect(verified).not.toHaveBeenCalled();
    }
    const { send, calls } = setUp({ rules: [OTHERS["a custom cost"], user] });
    await send("next", { headers });
    await send("next", { headers });
    calls.mockClear();
    expect(await send("next", { headers, ...stalled() })).toBe(429);
    expect(calls).not.toHaveBeenCalled();
  });

  it.each<[string, RuleInput]>([
    ["a limit of 0", { ...OWN, limit: 0 }],
    ["a ban", { ...OWN, limit: 1, window: "1s", ban: "1h" }],
    ["an earlier alternative of its key", { ...OWN, key: "header:x-api-key | custom:tenant" }],
    ["a tier", { ...OWN, limit: 9, tiers: { by: "header:x-api-key", limits: { k: ONE } } }],
    ["rollover", { ...OWN, capacity: 2 }],
    ["one of two shards", { ...OWN, limit: 4, shards: 2 }],
  ])("is denied early by %s", async (_, rule) => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    for (const store of Object.keys(STORES) as (keyof typeof STORES)[]) {
      const { send, calls } = setUp({ rules: [OTHERS["a custom cost"], rule], store });
      for (let sent = 0; sent < 4; sent++) await send("next", post());
      calls.mockClear();
      for (let sent = 0; sent < 5; sent++) expect(await send("next", stalled())).toBe(429);
      expect(calls).not.toHaveBeenCalled();
    }
  });

  it("is counted in one shard, although its cost is known later", async () => {
    const random = vi.spyOn(Math, "random").mockReturnValue(0);
    const rules = [{ ...OWN, limit: 4, shards: 2, cost: "custom:size" } as const];
    const { send } = setUp({ rules });
    for (let sent = 0; sent < 2; sent++) expect(await send("next", post("a"))).toBe(200);
    expect(await send("next", post("a"))).toBe(429);
    random.mockReturnValueOnce(0.9);
    expect(await send("next", post("a"))).toBe(200);
  });

  it("is denied early if an operator has blocked it, whatever the request costs", async () => {
    const rules = [{ ...OWN, limit: 99, cost: "custom:size" } as const];
    const set: object[] = [];
    const answer = {
      callAgainMs: 5000,
      overrides: { version: 1, all: set },
    };
    const WEIR_CONTROL = { getByName: () => ({ upload: async () => answer }) };
    const { config, send, calls } = setUp({ rules, bindings: { WEIR_CONTROL } });
    const [rule] = config.rules;
    const client = await identityOfLimitKey(rule as never, ADDRESS, config, undefined);
    const about = { reason: "abuse", by: "token", setAt: 0, expiresAt: Date.now() + HOUR };
    set.push({ rule: "own", client, effect: { kind: "blocked" }, ...about });
    for (const way of ["next", "middleware"] as const) {
      expect(await send(way, stalled())).toBe(429);
    }
    expect(calls).not.toHaveBeenCalled();
  });

  it("is denied early by the rule whose cost is unknown, if no lower cost would be admitted", async () => {
    for (const [atLeast, isCalled] of [
      [undefined, true],
      [0, true],
      [1, false],
    ] as const) {
      const rules = [{ ...OWN, limit: 4, cost: "custom:size" } as const];
      const { send, calls } = setUp({ rules, ...(atLeast !== undefined && { atLeast }) });
      expect(await send("next", post("text"))).toBe(200);
      expect(await send("next", post("text"))).toBe(429);
      calls.mockClear();
      expect(await send("next", post("text"))).toBe(429);
      expect(calls).toHaveBeenCalledTimes(isCalled ? 1 : 0);
      // A cost of 0 is free, unless the function states that it never returns 0.
      expect(await send("next", { method: "POST" })).toBe(isCalled ? 200 : 429);
    }
  });
});

describe("a client that is not denied from memory", () => {
  it.each<[string, RuleInput, object]>([
    ["exempt by its address", { ...OWN, exempt: { ips: [ADDRESS] } }, {}],
    ["exempt by a header", { ...OWN, exempt: { headers: { "x-api-key": "k" } } }, {}],
    ["under a rule in shadow mode", { ...OWN, mode: "shadow" }, {}],
    ["under a rule with the mode mark", { ...OWN, mode: "mark" }, {}],
    ["under a rule for programs", { ...OWN, for: "programs" }, {}],
    ["in a deployment with the mode shadow", OWN, { WEIR_MODE: "shadow" }],
    ["in a deployment with the mode off", OWN, { WEIR_MODE: "off" }],
  ])("passes: %s", async (_, rule, bindings) => {
    const { send, calls } = setUp({ rules: [rule, OTHERS["a custom cost"]], bindings });
    for (let sent = 0; sent < 5; sent++) expect(await send("next", post())).toBe(200);
    expect(calls).toHaveBeenCalledTimes(
      "WEIR_MODE" in bindings && bindings.WEIR_MODE === "off" ? 0 : 5,
    );
  });

  it("has its function called once, and each rule charged once", async () => {
    const rules = [{ ...OWN, limit: 9 }, OTHERS["a custom cost"], OTHERS["a custom key"]];
    const { send, calls } = setUp({ rules });
    for (let sent = 1; sent <= 9; sent++) {
      expect(await send("next", post())).toBe(200);
      expect(calls).toHaveBeenCalledTimes(2 * sent);
    }
    expect(await send("next", post())).toBe(429);
  });
});

import { createExecutionContext, env } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";
import type { Entry } from "../../src/stores/batch.ts";
import { PATIENCE } from "../patience.ts";

const TOKEN = "admin-token-of-more-than-32-characters";
const RULES = [{ name: "all", limit: 1, window: "1h", key: "header:x-client" }] as const;

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Creates a Worker in front of an app that answers "app". */
function createWorker(config: Partial<ConfigInput>, bindings: Record<string, unknown>) {
  const worker = weir(defineConfig({ rules: RULES, timeoutMs: 10_000, ...config }));
  return (
    request: { method?: string; path?: string; token?: string; client?: string } = {},
    next: (request: Request) => Response = () => new Response("app"),
  ) => {
    const { method = "POST", path = "/_weir/doctor", token = TOKEN } = request;
    const headers = {
      authorization: `Bearer ${token}`,
      "x-client": request.client ?? crypto.randomUUID(),
    };
    const url = `https://api.example.com${path}`;
    const ctx = createExecutionContext();
    return worker.fetch(new Request(url, { method, headers }), bindings, ctx, next);
  };
}

const MEMORY = { store: "memory" } as const;
const WITH_TOKEN = { WEIR_ADMIN_TOKEN: TOKEN };

describe("the doctor's endpoint", () => {
  const redis = inject("redis");
  const upstash = {
    UPSTASH_REDIS_REST_URL: redis.restUrl,
    UPSTASH_REDIS_REST_TOKEN: redis.restToken,
  };

  it.each([
    ["memory", MEMORY, {}, false],
    ["durable-object", {}, { COUNTERS: env.COUNTERS }, true],
    ["upstash", {}, upstash, false],
    ["upstash", { clock: "store" }, upstash, true],
  ] as const)("measures five decisions: %s %j", async (store, config, bindings, hasClock) => {
    const response = await createWorker(config, { ...bindings, ...WITH_TOKEN })();
    expect(response.headers.get("cache-control")).toBe("no-store");
    const report = await response.json<Record<string, unknown>>();
    expect(report).toMatchObject({ weir: "doctor", store, timeoutMs: 10_000, faults: [] });
    expect(report.decisionsMs).toEqual(Array(5).fill(expect.any(Number)));
    expect(report.error).toBeUndefined();
    expect(report.skewMs).toEqual(hasClock ? expect.any(Number) : undefined);
  });

  it("names faulty bindings and the failure of the store, and no secret", async () => {
    const secrets = { UPSTASH_REDIS_REST_URL: "https://db.invalid" };
    const worker = createWorker({}, { ...secrets, ...WITH_TOKEN });
    vi.spyOn(console, "error").mockReturnValue();
    const text = await (await worker()).text();
    expect(JSON.parse(text)).toMatchObject({
      store: "misconfigured",
      decisionsMs: [],
      faults: ["UPSTASH_REDIS_REST_TOKEN is not set"],
      error: "StoreError: UPSTASH_REDIS_REST_TOKEN is not set",
    });
    expect(text).not.toContain(TOKEN);
  });

  it("reports that the store refuses the token, without the token", async () => {
    const wrong = { ...upstash, UPSTASH_REDIS_REST_TOKEN: "wrong-token-7a9f" };
    const text = await (await createWorker({}, { ...wrong, ...WITH_TOKEN })()).text();
    expect(JSON.parse(text).error).toContain("WRONGPASS");
    expect(text).not.toContain("wrong-token-7a9f");
  });

  it("answers the token for reading too, because a run changes no rule and no client", async () => {
    const readToken = "read-token-of-more-than-32-characters!";
    const worker = createWorker(MEMORY, { ...WITH_TOKEN, WEIR_ADMIN_READ_TOKEN: readToken });
    const report = await (await worker({ token: readToken })).json();
    expect(report).toMatchObject({ weir: "doctor", store: "memory" });
  });

  it("charges no rule", async () => {
    const send = createWorker(MEMORY, WITH_TOKEN);
    for (const _ of [1, 2]) expect((await send({ client: "a" })).status).toBe(200);
    expect(await (await send({ client: "a", path: "/" })).text()).toBe("app");
  });

  it.each([
    ["without the secret", {}, {}],
    ["with another token", WITH_TOKEN, { token: `${TOKEN}2` }],
    ["with a shorter token", WITH_TOKEN, { token: TOKEN.slice(1) }],
    ["with an empty token", WITH_TOKEN, { token: "" }],
    ["with a path before it", WITH_TOKEN, { path: "/a/_weir/doctor" }],
  ])(
    "does not answer: Weir limits and forwards the request like any other, %s",
    async (_, bindings, request) => {
      const send = createWorker(MEMORY, bindings);
      const client = "b";
      const responses = [await send({ ...request, client }), await send({ ...request, client })];
      expect(responses.map(({ status }) => status)).toEqual([200, 429]);
      expect(await responses[0]?.text()).toBe("app");
    },
  );

  it.each([
    ["GET", { method: "GET" }],
    ["a longer path", { path: "/_weir/doctor/" }],
    ["an escape in the path", { path: "/_weir/d%6fctor" }],
  ])("answers operators with 404, for %s", async (_, request) => {
    expect((await createWorker(MEMORY, WITH_TOKEN)(request)).status).toBe(404);
  });

  it("does not answer if the secret is too short, and logs this without the secret", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const short = TOKEN.slice(0, 31);
    const send = createWorker(MEMORY, { WEIR_ADMIN_TOKEN: short });
    expect(await (await send({ token: short })).text()).toBe("app");
    await send({ token: short });
    expect(log.mock.calls).toEqual([
      ['{"weir":"misconfigured","fault":"WEIR_ADMIN_TOKEN has fewer than 32 characters"}'],
    ]);
  });

  it("makes one run at a time in an isolate", async () => {
    const send = createWorker({}, { COUNTERS: env.COUNTERS, ...WITH_TOKEN });
    const [one, other] = await Promise.all([send(), send()]);
    expect([one.status, other.status].sort()).toEqual([200, 503]);
    expect((await send()).status).toBe(200);
  });

  it("accepts another run after a run that was cancelled", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    const namespace = { getByName: () => ({ decide: () => never }) };
    const send = createWorker({ timeoutMs: 1000 }, { COUNTERS: namespace, ...WITH_TOKEN });
    const hanging = send();
    // Computing the hash of the token needs several rounds of the event loop.
    await vi.waitFor(async () => expect((await send()).status).toBe(503), PATIENCE);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 13_001 });
    expect((await createWorker(MEMORY, WITH_TOKEN)()).status).toBe(200);
    expect((await hanging).status).toBe(200);
  });

  it("accepts no other run before the removal of the counter has ended", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    const namespace = { getByName: () => ({ decide: () => never }) };
    const send = createWorker({ timeoutMs: 1000 }, { COUNTERS: namespace, ...WITH_TOKEN });
    const hanging = send();
    await vi.waitFor(async () => expect((await send()).status).toBe(503), PATIENCE);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11_500 });
    expect((await createWorker(MEMORY, WITH_TOKEN)()).status).toBe(503);
    await hanging;
  });

  it("counts under the prefix, and removes its counter also if a decision fails", async () => {
    const calls: string[] = [];
    const object = {
      run: async ([entry]: readonly Entry[]) => {
        calls.push(entry?.group ? "decide" : "reset");
        if (entry?.group) throw new Error("the object failed");
        return [{ parts: [], tallies: [] }];
      },
    };
    const namespace = {
      getByName: (name: string) => {
        expect(name).toMatch(/^tenant:doctor-[0-9a-f]{8}:[0-9a-f-]{36}$/);
        return object;
      },
    };
    const bindings = { COUNTERS: namespace, WEIR_PREFIX: "tenant", ...WITH_TOKEN };
    const body = await (await createWorker({}, bindings)()).json<{ error: string }>();
    expect(body.error).toContain("StoreError");
    expect(calls).toEqual(["decide", "reset"]);
  });

  it("reports a fault of the origin only if Weir forwards requests to it", async () => {
    const config = defineConfig({ ...MEMORY, rules: RULES, origin: { binding: "APP" } });
    const url = "https://api.example.com/_weir/doctor";
    const init = { method: "POST", headers: { authorization: `Bearer ${TOKEN}` } };
    const handler = weir(config);
    const faultsOf = async (...next: [(() => Response)?]) => {
      const ctx = createExecutionContext();
      const response = await handler.fetch(new Request(url, init), WITH_TOKEN, ctx, ...next);
      return (await response.json<{ faults: string[] }>()).faults;
    };
    expect(await faultsOf()).toEqual([expect.stringContaining("no service is bound as APP")]);
    expect(await faultsOf(() => new Response("app"))).toEqual([]);
    const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("app"));
    const response = await app.request(url, init, WITH_TOKEN);
    expect(await response.json()).toMatchObject({ faults: [] });
  });

  it("is also a part of the Hono middleware", async () => {
    const config = defineConfig({ ...MEMORY, rules: RULES });
    const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("app"));
    const post = async (token: string, bindings: object) => {
      const headers = { authorization: `Bearer ${token}`, "x-client": crypto.randomUUID() };
      const response = await app.request("/_weir/doctor", { method: "POST", headers }, bindings);
      return await response.text();
    };
    expect(JSON.parse(await post(TOKEN, WITH_TOKEN))).toMatchObject({ weir: "doctor" });
    expect(await post(`${TOKEN}2`, WITH_TOKEN)).toBe("app");
  });
});

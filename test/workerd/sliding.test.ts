import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import type { ConfigInput, RuleInput } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

/** A full minute in the future, because a store may remove rows of the past. */
const NOW = Math.ceil(Date.now() / 3_600_000) * 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const { restUrl, restToken } = inject("redis");
const STORES = {
  memory: {},
  upstash: { UPSTASH_REDIS_REST_URL: restUrl, UPSTASH_REDIS_REST_TOKEN: restToken },
  "durable-object": { COUNTERS: env.COUNTERS },
} as const;
type StoreName = keyof typeof STORES;

const at = (ms: number) => vi.setSystemTime(NOW + ms);

/** Five requests in any minute, counted in sub-windows of 6 s. */
const FIVE = { limit: 5, window: "1m", sliding: true } as const;

type Origin = (request: Request) => Response | Promise<Response>;

/** Creates a Worker in front of an origin. Its clients have the address 203.0.113.7, if no other one is given. */
function workerOf(
  store: StoreName,
  rules: readonly Partial<RuleInput>[],
  origin: Origin = () => new Response(),
  options: Partial<ConfigInput> = {},
) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    return request.url.startsWith(restUrl) ? realFetch(request) : origin(request);
  });
  const named = rules.map((rule, index) => ({ name: `r${index}`, ...rule }) as RuleInput);
  const { fetch } = weir({
    store,
    clock: "edge",
    timeoutMs: 10_000,
    prefix: crypto.randomUUID(),
    rules: named,
    ...options,
  });
  return async function send(
    headers: Record<string, string> = {},
    init: RequestInit = {},
    path = "/",
  ) {
    const all = { "cf-connecting-ip": "203.0.113.7", ...headers };
    const request = new Request(`https://api.example.com${path}`, { ...init, headers: all });
    const ctx = createExecutionContext();
    const response = await fetch(request as never, { ...STORES[store] } as never, ctx);
    const body = await response.text();
    await waitOnExecutionContext(ctx);
    return {
      status: response.status,
      body,
      quota: response.headers.get("ratelimit"),
      policy: response.headers.get("ratelimit-policy"),
      retryAfter: Number(response.headers.get("retry-after") ?? Number.NaN),
    };
  };
}

const realFetch = globalThis.fetch;

type Send = ReturnType<typeof workerOf>;

async function statuses(send: Send, times: number, headers?: Record<string, string>) {
  const all: number[] = [];
  for (let sent = 0; sent < times; sent++) all.push((await send(headers)).status);
  return all;
}

/** The number of requests that pass, of some more than the limit. */
const passed = async (send: Send, times: number, headers?: Record<string, string>) =>
  (await statuses(send, times, headers)).filter((status) => status === 200).length;

describe.each(Object.keys(STORES) as StoreName[])("a rule with sliding, over %s", (store) => {
  it("admits five logins around a boundary where a fixed window admits ten", async () => {
    for (const [sliding, total] of [
      [true, 5],
      [false, 10],
    ] as const) {
      const send = workerOf(store, [{ ...FIVE, sliding }]);
      at(58_000);
      expect(await passed(send, 6)).toBe(5);
      at(62_000);
      expect(await passed(send, 6)).toBe(total - 5);
    }
  });

  it("names in RateLimit the quota left, and when the next part of it is free", async () => {
    const send = workerOf(store, [FIVE]);
    at(0);
    expect((await send()).quota).toBe('"r0";r=4;t=66');
    at(6500);
    expect((await send()).quota).toBe('"r0";r=3;t=60');
    at(59_500);
    expect([(await send()).quota, (await send()).quota, (await send()).quota]).toEqual([
      '"r0";r=2;t=7',
      '"r0";r=1;t=7',
      '"r0";r=0;t=7',
    ]);
    at(65_999);
    expect(await send()).toMatchObject({ status: 429, quota: '"r0";r=0;t=1', retryAfter: 1 });
    // The first charge counts no longer, and then the second one.
    at(66_000);
    expect((await send()).quota).toBe('"r0";r=0;t=6');
    at(72_000);
    expect((await send()).quota).toBe('"r0";r=0;t=48');
    at(120_000 + 66_000 - 1);
    // All charges but the last ones count no longer.
    expect((await send()).quota).toBe('"r0";r=4;t=61');
  });

  it("says in Retry-After the first second at which the same request fits, for each cost", async () => {
    const cost = { from: "custom:size", max: 5 } as const;
    const custom = { costs: { size: (each: Request) => Number(each.headers.get("x-size")) } };
    const send = workerOf(store, [{ ...FIVE, cost }], undefined, { custom });
    const sized = (size: number) => send({ "x-size": `${size}` });
    for (const [ms, size] of [
      [1000, 1],
      [13_000, 2],
      [31_500, 2],
    ] as const) {
      at(ms);
      expect((await sized(size)).status).toBe(200);
    }
    const freeAt = [66_000, 78_000, 78_000, 96_000, 96_000];
    for (const now of [31_500, 59_999, 60_000, 65_001]) {
      at(now);
      for (const size of [5, 1, 2, 4, 3]) {
        const exact = (freeAt[size - 1] as number) - now;
        expect(await sized(size)).toMatchObject({
          status: 429,
          retryAfter: Math.ceil(exact / 1000),
        });
      }
    }
    for (const [size, free] of [
      [1, 66_000],
      [2, 78_000],
      [2, 96_000],
    ] as const) {
      at(free - 1);
      expect((await sized(size)).status).toBe(429);
      at(free);
      expect((await sized(size)).status).toBe(200);
    }
  });

  it("charges each request its cost, also a cost from the body", async () => {
    const send = workerOf(store, [{ ...FIVE, limit: 10, cost: "custom:items" }], undefined, {
      custom: {
        costs: { items: async (each) => ((await each.clone().json()) as unknown[]).length },
      },
    });
    const items = (...all: number[]) =>
      send({ "content-type": "application/json" }, { method: "POST", body: JSON.stringify(all) });
    at(3000);
    expect((await items(1, 2, 3, 4)).quota).toMatch(/r=6;/);
    at(20_000);
    expect((await items(1, 2, 3, 4, 5)).quota).toMatch(/r=1;/);
    expect(await items(1, 2)).toMatchObject({ status: 429, retryAfter: 46 });
    expect((await items()).status).toBe(200);
    expect((await items(1)).status).toBe(200);
    at(66_000);
    expect(await items(1, 2, 3, 4, 5)).toMatchObject({ status: 429, retryAfter: 18 });
    expect((await items(1, 2, 3, 4)).quota).toMatch(/r=0;/);
    // It can never pass.
    const never = await items(...Array.from({ length: 11 }, (_, index) => index));
    expect([never.status, never.retryAfter]).toEqual([429, Number.NaN]);
  });

  it("charges only the counted responses, with a reserve or without one", async () => {
    for (const reserve of [false, true]) {
      let status = 200;
      const count = { status: [401], reserve };
      const send = workerOf(
        store,
        [{ ...FIVE, limit: 2, count }],
        () => new Response(null, { status }),
      );
      at(1000);
      expect((await send()).quota).toMatch(/r=2;/);
      status = 401;
      expect((await send()).quota).toBe('"r0";r=1;t=65');
      status = 200;
      at(58_000);
      expect((await send()).quota).toBe('"r0";r=1;t=8');
      status = 401;
      expect((await send()).quota).toBe('"r0";r=0;t=8');
      expect(await send()).toMatchObject({ status: 429, retryAfter: 8 });
      at(66_000);
      expect((await send()).quota).toBe('"r0";r=0;t=54');
    }
  });

  it("gives a reserve back at once to the sub-window that it was charged in, and frees the rest at its own time", async () => {
    let used = 0;
    let takesMs = 0;
    const cost = { reserve: 50, settle: "header:x-used", max: 90 } as const;
    const send = workerOf(store, [{ ...FIVE, limit: 100, cost }], () => {
      vi.setSystemTime(Date.now() + takesMs);
      return new Response(null, { headers: { "x-used": `${used}` } });
    });
    at(0);
    [used, takesMs] = [10, 30_000];
    // 10 of the reserve of 50 stay in the first sub-window.
    expect((await send()).quota).toBe('"r0";r=90;t=36');
    [used, takesMs] = [40, 0];
    expect((await send()).quota).toBe('"r0";r=50;t=36');
    expect((await send()).quota).toBe('"r0";r=10;t=36');
    expect(await send()).toMatchObject({ status: 429, retryAfter: 66 });
    at(66_000);
    [used, takesMs] = [0, 0];
    // Only what the first request used is free: 20 of 100, which are too little for a reserve.
    expect(await send()).toMatchObject({ status: 429, quota: '"r0";r=20;t=30' });
    at(96_000);
    expect((await send()).quota).toBe('"r0";r=100;t=66');
  });

  it("charges more than the reserve when the response arrives, so that it counts for a whole window", async () => {
    const cost = { reserve: 10, settle: "header:x-used" } as const;
    let takesMs = 90_000;
    const send = workerOf(store, [{ ...FIVE, limit: 100, cost }], () => {
      vi.setSystemTime(Date.now() + takesMs);
      return new Response(null, { headers: { "x-used": "130" } });
    });
    at(0);
    expect((await send()).quota).toBe('"r0";r=0;t=66');
    takesMs = 0;
    at(90_000 + 65_999);
    expect((await send()).status).toBe(429);
    at(90_000 + 66_000);
    expect((await send()).status).toBe(200);
  });

  it("gives back no reserve of a sub-window that counts no longer", async () => {
    let takesMs = 66_000;
    const cost = { reserve: 50, settle: "header:x-used" } as const;
    const send = workerOf(store, [{ ...FIVE, limit: 100, cost }], () => {
      vi.setSystemTime(Date.now() + takesMs);
      return new Response(null, { headers: { "x-used": "1" } });
    });
    at(0);
    const slow = await send();
    expect(slow.quota).toBe('"r0";r=100;t=66');
    takesMs = 0;
    expect((await send()).quota).toMatch(/r=99;/);
  });

  it("bans a client that exceeds the limit in any minute, and forgets its counts meanwhile", async () => {
    const send = workerOf(store, [{ ...FIVE, ban: "10m" }]);
    at(58_000);
    expect(await passed(send, 5)).toBe(5);
    at(62_000);
    expect(await send()).toMatchObject({ status: 429, retryAfter: 600 });
    at(66_000 + 60_000);
    const { status, retryAfter } = await send();
    expect(status).toBe(429);
    // The time of Redis is real.
    expect(retryAfter).toBeGreaterThanOrEqual(store === "upstash" ? 590 : 536);
    if (store === "upstash") return;
    at(62_000 + 600_000);
    expect(await passed(send, 6)).toBe(5);
  });

  it("bans longer with each strike", async () => {
    const send = workerOf(store, [{ ...FIVE, limit: 1, ban: ["1m", "1h"] }]);
    at(0);
    expect(await statuses(send, 2)).toEqual([200, 429]);
    expect((await send()).retryAfter).toBe(66);
    if (store === "upstash") return;
    at(66_000);
    expect(await statuses(send, 2)).toEqual([200, 429]);
    expect((await send()).retryAfter).toBe(3600);
  });

  it("has counters of its own for a tier with another number of sub-windows, or without", async () => {
    const limits = {
      same: { limit: 9, window: "1m", sliding: 10 },
      finer: { limit: 5, window: "1m", sliding: 60 },
      fixed: { limit: 5, window: "1m" },
      none: { limit: 0, window: "1m", sliding: true },
    } as const;
    const send = workerOf(store, [{ ...FIVE, tiers: { by: "header:x-plan", limits } }]);
    at(59_500);
    expect(await passed(send, 6)).toBe(5);
    // A tier with the same sub-windows shares the counter.
    expect(await passed(send, 6, { "x-plan": "same" })).toBe(4);
    expect(await passed(send, 6, { "x-plan": "finer" })).toBe(5);
    expect(await passed(send, 6, { "x-plan": "fixed" })).toBe(5);
    expect(await passed(send, 1, { "x-plan": "none" })).toBe(0);
    at(60_000);
    expect(await passed(send, 6, { "x-plan": "fixed" })).toBe(5);
    expect((await send({ "x-plan": "finer" })).retryAfter).toBe(60);
    expect((await send()).retryAfter).toBe(60);
    at(119_999);
    expect(await passed(send, 6, { "x-plan": "finer" })).toBe(0);
    at(120_000);
    expect(await passed(send, 6, { "x-plan": "finer" })).toBe(5);
  });

  it("admits a request only if a fixed and a sliding window both have quota left", async () => {
    const limits = [
      { limit: 3, window: "1m", sliding: true },
      { limit: 7, window: "1h" },
      { limit: 5, window: "10m", sliding: 5 },
    ] as const;
    const send = workerOf(store, [{ limits }]);
    at(58_000);
    expect(await passed(send, 4)).toBe(3);
    at(62_000);
    expect(await send()).toMatchObject({ status: 429, retryAfter: 58 });
    at(120_000);
    expect(await statuses(send, 3)).toEqual([200, 200, 429]);
    // The first three charges are in the first sub-window of two minutes.
    expect((await send()).retryAfter).toBe(600);
    at(720_000);
    expect(await statuses(send, 3)).toEqual([200, 200, 429]);
    expect(await send()).toMatchObject({ retryAfter: 2880 });
  });

  it("limits nobody in the mode shadow, and tells the origin in the mode mark", async () => {
    const marks: (string | null)[] = [];
    const rules = [
      { ...FIVE, limit: 1, mode: "shadow" },
      { ...FIVE, limit: 2, mode: "mark" },
    ] as const;
    const send = workerOf(store, rules, ({ headers }) => {
      marks.push(headers.get("weir-over"));
      return new Response();
    });
    at(59_000);
    expect(await statuses(send, 2)).toEqual([200, 200]);
    at(61_000);
    expect(await statuses(send, 2)).toEqual([200, 200]);
    at(120_000);
    expect(await statuses(send, 1)).toEqual([200]);
    expect(marks.map((each) => each?.split(";")[0] ?? null)).toEqual([
      null,
      null,
      "r1",
      "r1",
      null,
    ]);
  });

  it("begins its sub-windows at the start of the rule", async () => {
    const start = new Date(NOW + 2000).toISOString() as "2026-01-01T00:00:02Z";
    const send = workerOf(store, [{ ...FIVE, limit: 2, start }]);
    at(1000);
    expect((await send()).quota).toBe('"r0";r=1;t=61');
    at(2000);
    expect((await send()).quota).toBe('"r0";r=0;t=60');
    at(62_000);
    expect(await statuses(send, 2)).toEqual([200, 429]);
    expect(await send()).toMatchObject({ retryAfter: 6 });
  });

  it("adds the jitter of the rule to Retry-After", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const send = workerOf(store, [{ ...FIVE, limit: 1, retryJitter: "10s" }]);
    at(1000);
    expect(await statuses(send, 1)).toEqual([200]);
    expect((await send()).retryAfter).toBe(70);
  });

  it("limits open requests too, and tells the origin both quotas", async () => {
    const told: (string | null)[] = [];
    const send = workerOf(
      store,
      [{ ...FIVE, limit: 2, concurrent: 1, tellOrigin: true }],
      ({ headers }) => {
        told.push(headers.get("weir-remaining"));
        return new Response();
      },
    );
    at(1000);
    expect(await statuses(send, 3)).toEqual([200, 200, 429]);
    expect(told).toEqual([
      '"r0/1m";r=1;t=65, "r0/concurrent";r=0',
      '"r0/1m";r=0;t=65, "r0/concurrent";r=0',
    ]);
  });

  it("counts no exempt client", async () => {
    const send = workerOf(store, [{ ...FIVE, limit: 1, exempt: { headers: { "x-in": "yes" } } }]);
    expect(await statuses(send, 3, { "x-in": "yes" })).toEqual([200, 200, 200]);
    expect(await statuses(send, 2)).toEqual([200, 429]);
  });

  it("limits a client by its own number, of 0 too, and by another number at once", async () => {
    let own = 2;
    const limit = { from: "custom:quota", max: 100, default: 1, cacheFor: "0s" } as const;
    const send = workerOf(store, [{ ...FIVE, limit }], undefined, {
      custom: { limits: { quota: () => own } },
    });
    at(58_000);
    expect(await statuses(send, 3)).toEqual([200, 200, 429]);
    own = 4;
    // The memory store knows that the last number is used up, so the function is not asked again.
    if (store === "memory") return;
    // An isolate remembers a denial, with the number of that time, for ten seconds.
    at(69_000);
    const more = await send();
    expect([more.policy, more.quota]).toEqual(['"r0";q=4;w=60;weir-even=3.6', '"r0";r=1;t=51']);
    // Of three charges, so many must count no longer. Two of them are in one sub-window.
    for (const [quota, ms, retryAfter] of [
      [3, 70_000, 50],
      [2, 81_000, 39],
      [1, 92_000, 40],
    ] as const) {
      own = quota;
      at(ms);
      expect(await send()).toMatchObject({ status: 429, retryAfter });
    }
    own = 0;
    at(103_000);
    const never = await send();
    expect([never.status, never.retryAfter]).toEqual([429, Number.NaN]);
    own = 4;
    expect((await send()).status).toBe(200);
  });

  it("shows the quota at quotaPath, and charges nothing for it", async () => {
    const send = workerOf(store, [FIVE], undefined, { quotaPath: "/quota" });
    const shown = async () => (await send({}, {}, "/quota")).quota;
    at(58_000);
    expect(await shown()).toBe('"r0";r=5;t=62');
    expect(await passed(send, 2)).toBe(2);
    at(62_000);
    expect(await passed(send, 2)).toBe(2);
    for (const [ms, quota] of [
      [62_000, "r=1;t=58"],
      [119_999, "r=1;t=1"],
      [120_000, "r=3;t=6"],
      [126_000, "r=5;t=66"],
    ] as const) {
      at(ms);
      expect(await shown()).toBe(`"r0";${quota}`);
    }
  });
});

it("a client that hangs up in the middle of a response gets the unused part of its reserve back at once", async () => {
  const cost = { reserve: 40, settle: "custom:used" } as const;
  const endless = new TextEncoder().encode("used 5\n");
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    return new Response(new ReadableStream({ pull: (body) => body.enqueue(endless) }));
  });
  const settle = async ({ body }: Response) => {
    const reader = body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    await reader?.cancel();
    return Number(/\d+/.exec(new TextDecoder().decode(value))?.[0]);
  };
  const { fetch } = weir({
    store: "memory",
    quotaPath: "/quota",
    rules: [{ name: "r0", ...FIVE, limit: 100, cost }],
    custom: { settle: { used: settle } },
  });
  const sent = async (path = "/") => {
    const headers = { "cf-connecting-ip": "203.0.113.7" };
    const request = new Request(`https://api.example.com${path}`, { headers });
    return fetch(request as never, {}, createExecutionContext());
  };
  const left = async () => (await sent("/quota")).headers.get("ratelimit");
  const hangUp = async () => {
    const reader = (await sent()).body?.getReader();
    await reader?.read();
    await reader?.cancel();
  };
  at(0);
  await hangUp();
  await expect.poll(left).toBe('"r0";r=95;t=66');
  at(7000);
  await hangUp();
  await expect.poll(left).toBe('"r0";r=90;t=59');
  at(66_000);
  expect(await left()).toBe('"r0";r=95;t=6');
  at(72_000);
  expect(await left()).toBe('"r0";r=100;t=66');
});

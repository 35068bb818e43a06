import { createExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../src/config/index.ts";
import { type Quota, rateLimit, WeirService, weir } from "../../src/index.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const PLAN = { name: "plan", key: "ip", limit: 2, window: "1m", mode: "mark" } as const;

/** The fields that tell the origin about quotas, and their forgeries, as the origin receives them. */
function toldBy({ headers }: Request) {
  return Object.fromEntries([...headers.entries()].filter(([name]) => name.startsWith("weir")));
}

const URL = "https://api.example.com/";
type Send = (
  init?: RequestInit,
  path?: string,
) => Promise<{ response: Response; told: object | undefined }>;

/** The ways in which Weir runs. Each sends a request, and returns the fields that the app gets. */
const WAYS: Record<string, (config: ConfigInput) => Send> = {
  "in front of an origin"(config) {
    const { fetch } = weir({ store: "memory", ...config });
    return async (init, path = "") => {
      let told: object | undefined;
      vi.spyOn(globalThis, "fetch").mockImplementation(async (input, options) => {
        const request = new Request(input, options);
        told = toldBy(request);
        return new Response(await request.text(), { headers: costOf(request) });
      });
      const request = new Request(URL + path, init) as never;
      const response = await fetch(request, {}, createExecutionContext());
      return { response, told };
    };
  },
  "with next"(config) {
    const { fetch } = weir({ store: "memory", ...config });
    return async (init, path = "") => {
      let told: object | undefined;
      const request = new Request(URL + path, init) as never;
      const response = await fetch(request, {}, createExecutionContext(), async (admitted) => {
        told = toldBy(admitted);
        return new Response(await admitted.text(), { headers: costOf(admitted) });
      });
      return { response, told };
    };
  },
  "as middleware"(config) {
    const app = new Hono();
    let told: object | undefined;
    app.use(rateLimit(defineConfig({ store: "memory", ...config })));
    app.all("*", async (c) => {
      told = toldBy(c.req.raw);
      return c.text(await c.req.text(), 200, costOf(c.req.raw));
    });
    return async (init, path = "") => {
      told = undefined;
      const response = await app.request(URL + path, init);
      return { response, told };
    };
  },
};

function costOf({ headers }: Request): Record<string, string> {
  return { "x-cost": headers.get("x-cost") ?? "0" };
}

describe.each(Object.entries(WAYS))("a rule with the mode mark, %s", (_, start) => {
  const sender = (...rules: RuleInput[]) => start({ rules });

  it("lets requests over the limit pass, and names itself in Weir-Over", async () => {
    const send = sender(PLAN);
    const seen = [];
    for (let sent = 0; sent < 4; sent++) {
      const { response, told } = await send({ method: "POST", body: "hello" });
      expect([response.status, await response.text()]).toEqual([200, "hello"]);
      seen.push([told, response.headers.get("ratelimit")]);
    }
    expect(seen).toEqual([
      [{}, '"plan";r=1;t=60'],
      [{}, '"plan";r=0;t=60'],
      [{ "weir-over": "plan" }, '"plan";r=0;t=60'],
      [{ "weir-over": "plan" }, '"plan";r=0;t=60'],
    ]);
  });

  it("removes the fields of clients from every request", async () => {
    const forged = {
      "Weir-Over": "plan",
      WEIR_OVER: "plan",
      "weir.over": "plan",
      "Weir-Remaining": '"plan";r=99;t=1',
      "weir~remaining": "99",
      "weir-overview": "kept",
    };
    const kept = { "weir-overview": "kept" };
    const send = sender(
      { ...PLAN, limit: 1, match: { paths: ["/api"] } },
      { name: "trial", limit: 0, window: "1m", mode: "shadow", match: { paths: ["/shadow"] } },
    );
    for (const path of ["other", "shadow", "api"]) {
      expect((await send({ headers: forged }, path)).told).toEqual(kept);
    }
    expect((await send({ headers: forged }, "api")).told).toEqual({ ...kept, "weir-over": "plan" });
  });

  it("does not change the client's fields if no rule uses these fields", async () => {
    const send = sender({ name: "api", limit: 5, window: "1m" });
    expect((await send({ headers: { "weir-over": "own" } })).told).toEqual({ "weir-over": "own" });
  });

  it("tells the origin the quota left with tellOrigin, in an enforced rule too", async () => {
    const send = sender(
      { name: "burst", limit: 9, window: "1m", tellOrigin: true },
      { ...PLAN, tellOrigin: true },
      { name: "other", limit: 9, window: "1m" },
    );
    await send();
    expect((await send()).told).toEqual({
      "weir-remaining": '"burst";r=7;t=60, "plan";r=0;t=60',
    });
    expect((await send()).told).toEqual({
      "weir-over": "plan",
      "weir-remaining": '"burst";r=6;t=60, "plan";r=0;t=60',
    });
  });

  it("names only the windows that a request exceeds", async () => {
    const limits = [
      { limit: 1, window: "1m" },
      { limit: 5, window: "1h" },
    ];
    const send = sender({ name: "plan", mode: "mark", limits });
    await send();
    expect((await send()).told).toEqual({ "weir-over": "plan/1m" });
    // The request over the limit of the minute has taken no quota of the hour.
    const { response } = await send();
    expect(response.headers.get("ratelimit")).toMatch(/"plan\/1h";r=4;/);
  });

  it("counts no requests that are denied from memory, and they do not show it", async () => {
    const send = sender({ ...PLAN, limit: 5 }, { name: "burst", limit: 1, window: "1s" });
    const statuses = [];
    for (let sent = 0; sent < 4; sent++) {
      const { response, told } = await send();
      statuses.push(response.status);
      if (response.status === 200) continue;
      expect(told).toBe(undefined);
      expect(response.headers.get("ratelimit")).toMatch(/^"burst";r=0;t=\d+$/);
      expect(await response.json()).toMatchObject({ "violated-policies": ["burst"] });
    }
    expect(statuses).toEqual([200, 429, 429, 429]);
    vi.setSystemTime(Date.now() + 1000);
    const { response } = await send();
    expect(response.headers.get("ratelimit")).toMatch(/"plan";r=3;/);
  });

  it("charges the response of requests within the limit, and of no others", async () => {
    const send = sender({ ...PLAN, limit: 100, cost: "header:x-cost" });
    const cost = { headers: { "x-cost": "70" } };
    const seen = [];
    for (let sent = 0; sent < 4; sent++) {
      const { response, told } = await send(cost);
      seen.push([told, response.headers.get("ratelimit")]);
    }
    expect(seen).toEqual([
      [{}, '"plan";r=30;t=60'],
      [{}, '"plan";r=0;t=60'],
      [{ "weir-over": "plan" }, '"plan";r=0;t=60'],
      [{ "weir-over": "plan" }, '"plan";r=0;t=60'],
    ]);
  });

  it("settles the reserves of requests within the limit, and of no others", async () => {
    const cost = { reserve: 60, settle: "header:x-cost" } as const;
    const send = sender({ ...PLAN, limit: 100, cost });
    const seen = [];
    for (const used of [50, 10, 30]) {
      const { response, told } = await send({ headers: { "x-cost": String(used) } });
      seen.push([told, response.headers.get("ratelimit")]);
    }
    const over = { "weir-over": "plan" };
    expect(seen).toEqual([
      [{}, '"plan";r=50;t=60'],
      [over, '"plan";r=50;t=60'],
      [over, '"plan";r=50;t=60'],
    ]);
  });

  it("settles only the reserve of the rule that a request does not exceed", async () => {
    const cost = { reserve: 60, settle: "header:x-cost" } as const;
    const send = sender(
      { name: "budget", limit: 1000, window: "1m", cost },
      { ...PLAN, limit: 100, cost },
    );
    const seen = [];
    for (const used of [50, 10]) {
      const { response } = await send({ headers: { "x-cost": String(used) } });
      seen.push(response.headers.get("ratelimit"));
    }
    expect(seen).toEqual([
      '"budget";r=950;t=60, "plan";r=50;t=60',
      '"budget";r=940;t=60, "plan";r=50;t=60',
    ]);
  });

  it("passes an undecided request without a mark, and without forged fields", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const send = start({ store: "upstash", rules: [{ ...PLAN, limit: 0, tellOrigin: true }] });
    const { response, told } = await send({ headers: { "weir-over": "plan" } });
    expect([response.status, told]).toEqual([200, {}]);
  });
});

describe("an app with several middlewares", () => {
  const config = defineConfig({
    store: "memory",
    rules: [
      { ...PLAN, limit: 0, tellOrigin: true },
      { ...PLAN, name: "tokens", limit: 0 },
      { name: "burst", limit: 9, window: "1m" },
    ],
  });

  it("gets the fields of all of them, and no field of the client", async () => {
    const app = new Hono<{ Variables: { rateLimit: readonly Quota[] } }>();
    for (const rule of ["plan", "burst", "tokens"] as const) app.use(rateLimit(config, { rule }));
    app.get("/", (c) =>
      c.json([
        c.req.header("weir-over"),
        c.req.header("weir-remaining"),
        c.var.rateLimit.map(({ policy, violated }) => [policy, violated]),
      ]),
    );
    const response = await app.request("/", { headers: { weir_over: "x" } });
    expect(await response.json()).toEqual([
      "plan, tokens",
      '"plan";r=0;t=60',
      [
        ["plan", true],
        ["burst", false],
        ["tokens", true],
      ],
    ]);
  });

  it("keeps a body that a middleware has read before", async () => {
    const app = new Hono();
    app.use(async (c, next) => {
      await c.req.text();
      await next();
    });
    app.use(rateLimit(config, { rule: "plan" }));
    app.post("/", async (c) => c.text(`${c.req.header("weir-over")}: ${await c.req.text()}`));
    const response = await app.request("/", { method: "POST", body: "hello" });
    expect(await response.text()).toBe("plan: hello");
  });

  it("gets the fields of nested handlers", async () => {
    const handlers = ["plan", "tokens"].map((name) =>
      weir({ store: "memory", rules: [{ ...PLAN, name, limit: 0 }] }),
    );
    const [outer, inner] = handlers as [ReturnType<typeof weir>, ReturnType<typeof weir>];
    const context = createExecutionContext();
    const request = new Request(URL, { headers: { "weir-over": "x" } }) as never;
    const response = await outer.fetch(request, {}, context, (told) =>
      inner.fetch(told, {}, context, ({ headers }) => new Response(headers.get("weir-over"))),
    );
    expect(await response.text()).toBe("plan, tokens");
  });
});

describe("a call of a program", () => {
  function serviceOf(rule: Partial<RuleInput> = {}) {
    class Limits extends WeirService {
      readonly config = defineConfig({ store: "memory", rules: [{ ...PLAN, ...rule }] });
    }
    return new Limits(createExecutionContext(), {});
  }

  it("is granted over the limit, with the policies that it exceeds", async () => {
    const service = serviceOf({ for: "programs", limit: 3 });
    expect(await service.limit("plan", { cost: 2 })).not.toHaveProperty("over");
    const over = { ok: true, over: ["plan"], quotas: [{ policy: "plan", remaining: 1 }] };
    expect(await service.check("plan", { cost: 2, throws: true })).toMatchObject(over);
    expect(await service.limit("plan", { cost: 2, throws: true })).toMatchObject(over);
    expect(await service.getValue("plan")).toMatchObject([{ remaining: 1, violated: false }]);
    expect(await service.limit("plan")).toMatchObject({ ok: true, quotas: [{ remaining: 0 }] });
    expect(await service.limit("plan", { cost: -1 })).toMatchObject({ quotas: [{ remaining: 1 }] });
    await service.reset("plan");
    expect(await service.getValue("plan")).toMatchObject([{ remaining: 3 }]);
  });

  it("has no reserve to settle if it exceeds the limit", async () => {
    const service = serviceOf({ limit: 100, cost: { reserve: 60, settle: "header:x-cost" } });
    expect(await service.limit("plan")).toMatchObject({ reserved: { cost: 60 } });
    const over = await service.limit("plan");
    expect(over).toMatchObject({ ok: true, over: ["plan"] });
    expect(over).not.toHaveProperty("reserved");
  });

  it("waits only for quota that it has reserved", async () => {
    const service = serviceOf({ limit: 1, maxReserved: 1 });
    const results = [];
    for (let call = 0; call < 3; call++)
      results.push(await service.limit("plan", { reserve: true }));
    expect(results.map(({ retryAfterMs }) => retryAfterMs)).toEqual([undefined, 60_000, undefined]);
    expect(results[2]).toMatchObject({ ok: true, over: ["plan"] });
  });
});

import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput, CustomCosts, RuleInput } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";
import { PATIENCE } from "../patience.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const URL = "https://api.example.com/";
const ADDRESS = { "cf-connecting-ip": "203.0.113.7" };
const RULE = { name: "api", limit: 10, window: "1h", cost: "custom:depth" } as const;

/** A request with a header that functions read, or with any other fields. */
type Sent = number | RequestInit;

/** Creates a handler whose origin is replaced, and a list of the lines that it logs. */
function handler(
  rules: readonly RuleInput[],
  costs: CustomCosts = { depth: (request) => Number(request.headers.get("x-depth")) },
  options: Partial<ConfigInput> = {},
) {
  const origin = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
  const lines: Record<string, unknown>[] = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => void lines.push(JSON.parse(line)));
  }
  const { fetch } = weir({ store: "memory", rules, custom: { costs }, ...options });
  async function send(sent: Sent = {}) {
    const init = typeof sent === "number" ? { headers: { "x-depth": String(sent) } } : sent;
    const request = new Request(URL, { ...init, headers: { ...ADDRESS, ...init.headers } });
    const ctx = createExecutionContext();
    const response = await fetch(request as never, {}, ctx);
    await waitOnExecutionContext(ctx);
    return response;
  }
  const statuses = async (...all: Sent[]) => {
    const list = [];
    for (const each of all) list.push((await send(each)).status);
    return list;
  };
  return { send, statuses, lines, origin };
}

/** Returns the quota left, as the RateLimit field of a response shows it. */
function remaining(response: Response): number {
  return Number(/r=(\d+)/.exec(response.headers.get("ratelimit") ?? "")?.[1]);
}

let now = Date.now();

/** Advances the clock, because an isolate logs a rule's unreadable costs at most once a second. */
function skipLogInterval(): void {
  now += 10_000;
  vi.useFakeTimers({ toFake: ["Date"], now });
}

const unreadable = (cause: string, source = "custom:depth") => ({
  weir: "cost-unreadable",
  rule: "api",
  source,
  cause,
});

describe("a cost custom:NAME", () => {
  it("is charged before the request is forwarded", async () => {
    const { send, statuses, origin } = handler([RULE]);
    expect(remaining(await send(4))).toBe(6);
    expect(await statuses(7, 6, 1)).toEqual([429, 200, 429]);
    expect(origin).toHaveBeenCalledTimes(2);
  });

  it("of 0 takes no quota, and passes even if no quota is left", async () => {
    const { send, statuses, lines } = handler([RULE]);
    expect(await statuses(10, 0)).toEqual([200, 200]);
    expect(remaining(await send(0))).toBe(0);
    expect(lines).toEqual([]);
  });

  it("above the limit is denied and takes no quota", async () => {
    const { send } = handler([RULE]);
    const denied = await send(11);
    expect(denied.status).toBe(429);
    expect(denied.headers.get("retry-after")).toBeNull();
    expect(remaining(await send(3))).toBe(7);
  });

  it("is capped by max", async () => {
    const { send } = handler([{ ...RULE, cost: { from: "custom:depth", max: 4 } }]);
    expect(remaining(await send(999_999_999_999_999))).toBe(6);
    expect(remaining(await send(3))).toBe(3);
  });

  it("does not deny a later request with a lower cost", async () => {
    const { statuses } = handler([RULE]);
    expect(await statuses(8, 5, 2, 1)).toEqual([200, 429, 200, 429]);
  });

  it("is charged in each window, with the quotas of the client's tier, and after exemptions", async () => {
    const depth = vi.fn(() => 3);
    const rule = {
      ...RULE,
      tiers: { by: "header:x-plan", limits: { pro: { limit: 30, window: "1h" } } },
      exempt: { headers: { "x-internal": "yes" } },
    } as const;
    const { send } = handler([rule], { depth });
    expect(remaining(await send({ headers: { "x-plan": "pro" } }))).toBe(27);
    expect(remaining(await send({ headers: { "x-plan": "free" } }))).toBe(4);
    await send({ headers: { "x-internal": "yes" } });
    expect(depth).toHaveBeenCalledTimes(2);
  });

  it("comes from one call of the function, even if several rules use it", async () => {
    const depth = vi.fn(async () => 3);
    const other = { ...RULE, name: "other", cost: { from: "custom:depth", max: 2 } } as const;
    const { send } = handler([RULE, other, { ...RULE, name: "third", mode: "shadow" }], { depth });
    const fields = (await send()).headers.get("ratelimit");
    expect(fields).toMatch(/"api";r=7;.*"other";r=8/);
    expect(depth).toHaveBeenCalledOnce();
  });

  it("is computed only for requests to which the rule applies", async () => {
    const depth = vi.fn(() => 1);
    const { send } = handler([{ ...RULE, match: { methods: ["POST"] } }], { depth });
    await send();
    expect(depth).not.toHaveBeenCalled();
  });

  it("can read a clone of the body, which the origin still gets", async () => {
    const batch = async (request: Request) => [await request.clone().json()].flat().length;
    const { send, origin } = handler([{ ...RULE, cost: "custom:batch" }], { batch });
    const got = vi.fn();
    origin.mockImplementation(async (input, init) => {
      got(await new Request(input as Request, init).text());
      return new Response();
    });
    const post = (body: string) => send({ method: "POST", body });
    expect(remaining(await post("[1,2,3]"))).toBe(7);
    expect(remaining(await post("{}"))).toBe(6);
    expect(got.mock.calls).toEqual([["[1,2,3]"], ["{}"]]);
  });
});

describe("a cost custom:NAME that is no whole number", () => {
  const values: [unknown, string][] = [
    [4000.5, "invalid"],
    [-1, "invalid"],
    [Number.NaN, "invalid"],
    [Number.POSITIVE_INFINITY, "invalid"],
    [1e15, "invalid"],
    ["5", "invalid"],
    [5n, "invalid"],
    [{}, "invalid"],
    [undefined, "missing"],
    [null, "missing"],
  ];

  it.each(values)("%s costs 1, and is logged without the value", async (value, cause) => {
    skipLogInterval();
    const { send, lines } = handler([RULE], { depth: () => value as never });
    expect(remaining(await send())).toBe(9);
    expect(lines).toEqual([unreadable(cause)]);
  });

  it("counts as 0 if it is -0", async () => {
    const { send } = handler([RULE], { depth: () => -0 });
    expect(remaining(await send())).toBe(10);
  });

  it.each<[string, object, number]>([
    ["the maximum, and no lower default", { max: 5, default: 2 }, 5],
    ["the maximum, and no default of 0", { max: 5, default: 0 }, 5],
    ["the maximum if there is no default", { max: 5 }, 5],
    ["the default if there is no maximum", { default: 4 }, 6],
    ["1 if the default is 0 and there is no maximum", { default: 0 }, 9],
  ])("costs %s", async (_, bounds, left) => {
    const cost = { from: "custom:depth", ...bounds };
    const { send } = handler([{ ...RULE, cost }], { depth: () => -5 });
    expect(remaining(await send())).toBe(left);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("secret");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret"))],
  ])("costs the maximum if the function %s", async (_, depth) => {
    skipLogInterval();
    const { send, lines } = handler([{ ...RULE, cost: { from: "custom:depth", max: 5 } }], {
      depth,
    });
    expect(remaining(await send())).toBe(5);
    expect(lines).toEqual([unreadable("threw")]);
  });

  it("costs the maximum if the client sends its body slowly, and the request is decided", async () => {
    const costs = { depth: async (request: Request) => (await request.clone().text()).length };
    const cost = { from: "custom:depth", max: 10 } as const;
    const { statuses, lines } = handler([{ ...RULE, cost }], costs, { timeoutMs: 20 });
    const slow = () => ({ method: "POST", body: new ReadableStream({}) });
    expect(await statuses(slow(), slow())).toEqual([200, 429]);
    const unread = lines.filter(({ weir }) => weir !== "denied");
    for (const line of unread) expect(line).toEqual(unreadable("timeout"));
  });
});

describe("the cost of a rule in shadow mode", () => {
  it("neither delays nor fails an enforced rule if its function never returns", async () => {
    const costs = { depth: () => 4, never: () => new Promise<never>(() => {}) };
    const trial = { ...RULE, name: "trial", mode: "shadow", cost: "custom:never" } as const;
    const { fetch } = weir({
      store: "memory",
      rules: [RULE, trial],
      custom: { costs },
      timeoutMs: 30_000,
    });
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const request = new Request(URL, { headers: ADDRESS });
    const response = await fetch(request as never, {}, createExecutionContext());
    expect(remaining(response)).toBe(6);
  });

  it("is charged when its slow function has returned, and logged if it does not fit", async () => {
    const costs = { depth: () => 1, late: () => scheduler.wait(20).then(() => 11) };
    const trial = { ...RULE, name: "trial", mode: "shadow", cost: "custom:late" } as const;
    const { send, lines } = handler([RULE, trial], costs);
    expect((await send()).status).toBe(200);
    const denied = { mode: "shadow", policy: "trial" };
    await vi.waitFor(() => expect(lines).toMatchObject([denied]), PATIENCE);
  });
});

describe("the cost body:bytes", () => {
  const BYTES = { ...RULE, limit: 1000, cost: "body:bytes" } as const;
  const stated = (length: string, body?: BodyInit): Sent => ({
    method: "POST",
    body: body ?? "x",
    headers: { "content-length": length },
  });

  it.each<[string, Sent, number]>([
    ["is 0 for a request without a body", {}, 1000],
    ["is 0 for an empty body", stated("0", ""), 1000],
    ["is the stated length", stated("400"), 600],
    ["may be stated with leading zeros", stated("0400"), 600],
    ["is the smallest limit if no length is stated", { method: "POST", body: "x" }, 0],
    ["is the smallest limit for a list of lengths", stated("4, 4"), 0],
    ["is the smallest limit for a negative length", stated("-4"), 0],
    ["is the smallest limit for an exponent", stated("1e2"), 0],
    ["is the smallest limit for a sign", stated("+4"), 0],
    ["is the smallest limit for a hexadecimal length", stated("0x4"), 0],
    ["is the smallest limit for an empty length", stated(""), 0],
    ["is the smallest limit for a huge length", stated("9".repeat(16)), 0],
    [
      "is the smallest limit if a transfer coding determines the length",
      {
        method: "POST",
        body: "x",
        headers: { "content-length": "4", "transfer-encoding": "chunked" },
      },
      0,
    ],
  ])("%s", async (_, sent, left) => {
    const { send } = handler([BYTES]);
    const response = await send(sent);
    expect(response.status).toBe(200);
    expect(remaining(response)).toBe(left);
  });

  it("is max for an unknown or a longer body", async () => {
    const { send } = handler([{ ...BYTES, cost: { from: "body:bytes", max: 300 } }]);
    expect(remaining(await send({ method: "POST", body: "x" }))).toBe(700);
    expect(remaining(await send(stated("301")))).toBe(400);
    expect(remaining(await send(stated("299")))).toBe(101);
  });

  it.each([
    [{ max: 300, default: 0 }, 700],
    [{ max: 300, default: 100 }, 700],
    [{ default: 0 }, 0],
  ])("is not lower for an unknown body because of a default: %j", async (bounds, left) => {
    const { send } = handler([{ ...BYTES, cost: { from: "body:bytes", ...bounds } }]);
    expect(remaining(await send({ method: "POST", body: "x" }))).toBe(left);
  });

  it("above the limit is denied", async () => {
    const { statuses } = handler([BYTES]);
    expect(await statuses(stated("1001"), stated("1000"), stated("1"))).toEqual([429, 200, 429]);
  });

  it("of an unknown body is denied by a limit of 0", async () => {
    const { statuses } = handler([{ ...BYTES, limit: 0 }]);
    expect(await statuses({ method: "POST", body: "x" })).toEqual([429]);
  });

  it("of an unknown body fits into a shard", async () => {
    const { statuses } = handler([{ ...BYTES, shards: 3 }]);
    expect(await statuses({ method: "POST", body: "x" })).toEqual([200]);
  });

  it("of an unknown body does not depend on the number of open requests", async () => {
    const { statuses } = handler([{ ...BYTES, concurrent: 2 }]);
    expect(await statuses({ method: "POST", body: "x" }, stated("1"))).toEqual([200, 429]);
  });

  it("of an unknown body is the smallest limit of the client's tier", async () => {
    const limits = {
      pro: {
        limits: [
          { limit: 50, window: "1m" },
          { limit: 2000, window: "1d" },
        ],
      },
    } as const;
    const rule = { ...BYTES, tiers: { by: "header:x-plan", limits } } as const;
    const { send } = handler([rule]);
    const headers = { "x-plan": "pro" };
    const field = (await send({ method: "POST", body: "x", headers })).headers.get("ratelimit");
    expect(field).toMatch(/r=0;.*r=1950/);
  });

  it("is logged once a second if it is unknown", async () => {
    skipLogInterval();
    const { statuses, lines } = handler([{ ...BYTES, cost: { from: "body:bytes", max: 1 } }]);
    await statuses(stated("a"), { method: "POST", body: "x" });
    expect(lines).toEqual([unreadable("invalid", "body:bytes")]);
    vi.advanceTimersByTime(1000);
    await statuses({ method: "POST", body: "x" });
    expect(lines).toEqual([
      unreadable("invalid", "body:bytes"),
      unreadable("missing", "body:bytes"),
    ]);
  });
});

describe("a cost of the request, together with count by status", () => {
  it("is charged after the response, if the status matches", async () => {
    const rule = { ...RULE, count: { status: [200] } };
    const { send, statuses, origin } = handler([rule]);
    expect(remaining(await send(4))).toBe(6);
    origin.mockImplementation(async () => new Response(null, { status: 404 }));
    expect(remaining(await send(4))).toBe(6);
    // The request passes only if its cost fits.
    expect(await statuses(7, 6)).toEqual([429, 404]);
  });
});

describe("a cost of the request while the store fails", () => {
  const LOCAL = { ...RULE, limit: 100, onError: "local", localShare: 0.1 } as const;
  const options = { store: "durable-object" } as const;

  it("is counted by the isolate, and a cost above its share passes once", async () => {
    // There is no binding COUNTERS, so the store cannot decide.
    const { statuses } = handler([LOCAL], undefined, options);
    expect(await statuses(4, 4, 3, 2, 1)).toEqual([200, 200, 429, 200, 429]);
    const { statuses: other } = handler([{ ...LOCAL, name: "other" }], undefined, options);
    expect(await other(60, 60, 101)).toEqual([200, 429, 429]);
  });

  it("is counted by the native limiter as one request", async () => {
    const limit = vi.fn(async () => ({ success: true }));
    const nativeLimiter = { binding: "NATIVE" };
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    vi.spyOn(console, "error").mockImplementation(() => {});
    const costs = { depth: () => 4 };
    const { fetch } = weir({ ...options, rules: [LOCAL], custom: { costs }, nativeLimiter });
    const request = new Request(URL, { headers: ADDRESS });
    const response = await fetch(request as never, { NATIVE: { limit } }, createExecutionContext());
    expect(response.status).toBe(200);
    expect(limit).toHaveBeenCalledOnce();
  });
});

describe("the middleware", () => {
  it("charges the costs of requests", async () => {
    const app = new Hono();
    const costs: CustomCosts = { depth: (_, { c }) => Number(c?.req.query("depth")) };
    app.use(rateLimit({ store: "memory", rules: [RULE], custom: { costs } }));
    app.get("/", (c) => c.text("ok"));
    const send = (depth: number) =>
      app.request(`${URL}?depth=${depth}`, { headers: ADDRESS }, {}, createExecutionContext());
    expect(remaining(await send(4))).toBe(6);
    expect((await send(7)).status).toBe(429);
  });
});

import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput, CustomContext, CustomKeys } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";
import { Limiter } from "../../src/limiter/limiter.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const RULE = { name: "api", key: "custom:plan", limit: 1, window: "1h" } as const;
const ADDRESS = { "cf-connecting-ip": "203.0.113.7" };

/** Creates a handler whose origin is replaced, and a list of the lines that it logs. */
function handler(keys: CustomKeys, options: Partial<ConfigInput> = {}) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
  const lines: unknown[] = [];
  vi.spyOn(console, "error").mockImplementation((line) => void lines.push(JSON.parse(line)));
  const { fetch } = weir({ store: "memory", rules: [RULE], custom: { keys }, ...options });
  const send = async (headers: Record<string, string> = ADDRESS, env?: object) => {
    const request = new Request("https://api.example.com/", { headers });
    return (await fetch(request as never, env, createExecutionContext())).status;
  };
  return { fetch, send, lines };
}

describe("a function in custom", () => {
  it("gets the request, the bindings of this request, and its context", async () => {
    const seen: CustomContext[] = [];
    const { fetch } = handler({
      plan(request, context) {
        seen.push(context);
        const { PLANS } = context.env as unknown as { PLANS: Map<string, string> };
        return PLANS.get(request.headers.get("x-api-key") ?? "");
      },
    });
    const statuses = [];
    for (const plan of ["gold", "gold", "silver"]) {
      const env = { PLANS: new Map([["k", plan]]) };
      const ctx = createExecutionContext();
      const request = new Request("https://api.example.com/", { headers: { "x-api-key": "k" } });
      statuses.push((await fetch(request as never, env, ctx)).status);
      expect(seen.at(-1)?.env).toBe(env);
      expect(seen.at(-1)?.ctx).toBe(ctx);
      expect(seen.at(-1)?.c).toBeUndefined();
    }
    expect(statuses).toEqual([200, 429, 200]);
  });

  it("can let a task run after the response", async () => {
    const ran = vi.fn();
    const { fetch } = handler({
      plan(_, { ctx }) {
        ctx.waitUntil(scheduler.wait(20).then(ran));
        return "gold";
      },
    });
    const ctx = createExecutionContext();
    await fetch(new Request("https://api.example.com/") as never, {}, ctx);
    expect(ran).not.toHaveBeenCalled();
    await waitOnExecutionContext(ctx);
    expect(ran).toHaveBeenCalledOnce();
  });

  it.each([
    ["without bindings and context", []],
    ["with undefined bindings and context", [undefined, undefined]],
    ["with null bindings and context", [null, null]],
  ])("gets usable arguments in a call %s", async (_, rest) => {
    const task = vi.fn();
    const { fetch } = handler({
      plan(_, { env, ctx }) {
        ctx.waitUntil(Promise.resolve().then(task));
        return Object.keys(env).length === 0 ? "none" : "some";
      },
    });
    const call = () =>
      fetch(new Request("https://api.example.com/") as never, ...(rest as unknown as []));
    expect((await call()).status).toBe(200);
    expect((await call()).status).toBe(429);
    expect(task).toHaveBeenCalledTimes(2);
  });

  it("gets Hono's context in an app, and can read the variables of earlier middleware", async () => {
    const app = new Hono<{ Variables: { user: string } }>();
    app.use(async (c, next) => {
      c.set("user", c.req.header("x-session") ?? "");
      await next();
    });
    const plan = vi.fn((_: Request, { c }: CustomContext) => c?.get("user") as string);
    app.use(rateLimit({ store: "memory", rules: [RULE], custom: { keys: { plan } } }));
    app.get("/", (c) => c.text("ok"));
    const statuses = [];
    for (const session of ["a", "b", "a"]) {
      const ctx = createExecutionContext();
      const env = { VAR: "value" };
      const response = await app.request("/", { headers: { "x-session": session } }, env, ctx);
      statuses.push(response.status);
      expect(plan.mock.lastCall?.[1].env).toBe(env);
      expect(plan.mock.lastCall?.[1].ctx).toBe(ctx);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });

  it("gets a substitute context in a Hono app whose caller passes no context", async () => {
    const app = new Hono();
    const plan = (_: Request, { env, ctx }: CustomContext) =>
      `${typeof env}${typeof ctx.waitUntil}`;
    const seen = vi.fn(plan);
    app.use(rateLimit({ store: "memory", rules: [RULE], custom: { keys: { plan: seen } } }));
    app.get("/", (c) => c.text("ok"));
    expect((await app.request("/")).status).toBe(200);
    expect(seen).toHaveReturnedWith("objectfunction");
  });
});

describe("a function in custom that takes longer than timeoutMs", () => {
  const never = () => new Promise<never>(() => {});

  it("leads to the next alternative of the key, or to the address", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const rules = [{ ...RULE, key: "custom:late | header:x-api-key" }];
    const { send, lines } = handler({ late: never }, { timeoutMs: 5, rules });
    const statuses = [];
    for (const headers of [{ "x-api-key": "a" }, { "x-api-key": "b" }, { "x-api-key": "a" }]) {
      statuses.push(await send({ ...ADDRESS, ...headers }));
    }
    statuses.push(await send(), await send());
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
    expect(lines).toEqual([{ weir: "custom-key-failed", key: "late", cause: "timeout" }]);
  });

  it("leaves no request undecided, even if the client sends its body slowly to an open rule", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const keys: CustomKeys = {
      body: async (request) => ((await request.clone().json()) as { plan: string }).plan,
    };
    const rules = [{ ...RULE, key: "custom:body" }];
    const { fetch, lines } = handler(keys, { timeoutMs: 20, rules });
    const statuses = [];
    for (let sent = 0; sent < 3; sent++) {
      // This body never ends.
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"plan":')),
      });
      const init = { method: "POST", body, headers: ADDRESS };
      const request = new Request("https://api.example.com/", init);
      statuses.push((await fetch(request as never, {}, createExecutionContext())).status);
    }
    expect(statuses).toEqual([200, 429, 429]);
    expect(lines).toEqual([{ weir: "custom-key-failed", key: "body", cause: "timeout" }]);
  });

  it("does not shorten the deadline of the store", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const decide = vi.spyOn(Limiter.prototype, "decide");
    const { send } = handler({ plan: never }, { timeoutMs: 1000 });
    const status = send();
    await vi.advanceTimersByTimeAsync(1000);
    expect(await status).toBe(200);
    const [, , spentMs] = decide.mock.lastCall ?? [];
    expect(spentMs).toBe(0);
  });
});

describe("a function in custom that takes almost the whole timeoutMs", () => {
  it("does not shorten the time for the charge of a response", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const { chargeResponse } = Limiter.prototype;
    vi.spyOn(Limiter.prototype, "chargeResponse").mockImplementation(async function (
      this: Limiter,
      ...args
    ) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      return chargeResponse.apply(this, args);
    });
    const plan = () => new Promise<string>((resolve) => setTimeout(resolve, 900, "gold"));
    const rules = [{ ...RULE, limit: 5, cost: "header:x-cost" }] as const;
    const { fetch } = handler({ plan }, { timeoutMs: 1000, rules });
    const ctx = createExecutionContext();
    const response = fetch(new Request("https://api.example.com/") as never, {}, ctx);
    await vi.advanceTimersByTimeAsync(900 + 500);
    // Without the charge, the field would show r=5.
    expect((await response).headers.get("ratelimit")).toContain("r=4");
  });
});

describe("the log of a function that fails", () => {
  it("has one line a second for each key, without the error", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_000_000 });
    const fail = () => {
      throw new Error("a secret");
    };
    const other = { ...RULE, name: "other", key: "custom:user" };
    const { send, lines } = handler({ plan: fail, user: fail }, { rules: [RULE, other] });
    const threw = (key: string) => ({ weir: "custom-key-failed", key, cause: "threw" });
    for (let sent = 0; sent < 3; sent++) await send();
    expect(lines).toEqual([threw("plan"), threw("user")]);
    vi.setSystemTime(Date.now() + 999);
    await send();
    expect(lines).toHaveLength(2);
    vi.setSystemTime(Date.now() + 1);
    await send();
    expect(lines).toEqual([threw("plan"), threw("user"), threw("plan"), threw("user")]);
  });
});

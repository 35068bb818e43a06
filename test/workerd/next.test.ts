import { createExecutionContext } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../src/config/index.ts";
import { type Next, weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const RULE = { name: "api", limit: 2, window: "1h" } as const;

/**
 * Returns a function that sends requests to a handler with `next`. The origin must not be called.
 */
function inFrontOf(next: Next, rule: object = {}, options: Partial<ConfigInput> = {}) {
  const origin = vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no origin"));
  const { fetch } = weir({ store: "memory", rules: [{ ...RULE, ...rule }], ...options });
  async function send(path = "/", init: RequestInit = {}, env: object = {}) {
    const request = new Request(`https://app.example.com${path}`, init);
    const response = await fetch(request as never, env, createExecutionContext(), next);
    return { request, response };
  }
  return { send, origin };
}

describe("weir(config).fetch with next", () => {
  it("calls next with the request in place of the origin, and adds the RateLimit fields", async () => {
    const next = vi.fn(
      async () => new Response("page", { status: 201, headers: { "x-app": "1" } }),
    );
    const { send, origin } = inFrontOf(next as never);
    const { request, response } = await send();
    expect(next.mock.lastCall as unknown).toEqual([request]);
    expect([response.status, await response.text()]).toEqual([201, "page"]);
    expect(response.headers.get("x-app")).toBe("1");
    expect(response.headers.get("ratelimit-policy")).toBe('"api";q=2;w=3600');
    expect(response.headers.get("ratelimit")).toMatch(/^"api";r=1;t=\d+$/);
    expect(origin).not.toHaveBeenCalled();
  });

  it.each(["POST", "OPTIONS", "HEAD"])(
    "calls next with %s without Upgrade, which would make the runtime send GET",
    async (method) => {
      const next = vi.fn(async (request: Request) => {
        const { method, headers } = request;
        return Response.json([
          method,
          headers.has("upgrade"),
          headers.get("x-a"),
          await request.text(),
        ]);
      });
      const body = method === "HEAD" ? null : "body";
      const { send } = inFrontOf(next as never, { match: { methods: [method] } });
      const { response } = await send("/", {
        method,
        body,
        headers: { upgrade: "websocket", "x-a": "b" },
      });
      expect(response.headers.get("ratelimit")).toMatch(/^"api";r=1;t=\d+$/);
      expect(await response.json()).toEqual([method, false, "b", body ?? ""]);
    },
  );

  it("answers a request over the limit, and does not call next", async () => {
    const next = vi.fn(() => new Response());
    const { send } = inFrontOf(next);
    const statuses = [];
    for (let sent = 0; sent < 3; sent++) statuses.push((await send()).response.status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(next).toHaveBeenCalledTimes(2);
  });

  it("applies the rules that the request matches", async () => {
    const { send } = inFrontOf(() => new Response(), { match: { paths: ["/login"] }, limit: 0 });
    expect((await send("/login")).response.status).toBe(429);
    const { response } = await send("/other");
    expect([response.status, response.headers.has("ratelimit")]).toEqual([200, false]);
  });

  it("accepts a next that returns no promise, and a response whose fields cannot be changed", async () => {
    const { send } = inFrontOf(() => Response.redirect("https://app.example.com/new"));
    const { response } = await send();
    expect(response.status).toBe(302);
    expect(response.headers.get("location")).toBe("https://app.example.com/new");
    expect(response.headers.get("ratelimit")).toMatch(/^"api";r=1;/);
  });

  it("returns a response that cannot be copied without the fields", async () => {
    const error = Response.error();
    const { send } = inFrontOf(() => error);
    expect((await send()).response).toBe(error);
  });

  it("lets next read the body of the request", async () => {
    const { send } = inFrontOf(async (request) => new Response(await request.text()));
    const { response } = await send("/", { method: "POST", body: "text" });
    expect(await response.text()).toBe("text");
  });

  it("keeps every Set-Cookie field of the response of next", async () => {
    const headers = new Headers({ "set-cookie": "a=1" });
    headers.append("set-cookie", "b=2");
    const { send } = inFrontOf(() => new Response(null, { status: 204, headers }));
    const { response } = await send();
    expect(response.status).toBe(204);
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  });

  it.each([
    ["the status", { count: { status: [401] } }, { status: 401 }, "r=1"],
    ["a status that the rule does not count", { count: { status: [401] } }, {}, "r=2"],
    ["the cost", { cost: "header:x-cost" }, { headers: { "x-cost": "2" } }, "r=0"],
  ] as const)("charges by the response of next: %s", async (_, rule, init, left) => {
    const { send } = inFrontOf(() => new Response(null, init as ResponseInit), rule);
    expect((await send()).response.headers.get("ratelimit")).toContain(left);
  });

  const fault = new Error("a fault of the app");
  it.each<[string, Next, object]>([
    ["throws", () => Promise.reject(fault), {}],
    [
      "throws before it returns a promise",
      () => {
        throw fault;
      },
      {},
    ],
    [
      "throws under a rule that is charged by the response",
      () => Promise.reject(fault),
      { count: { status: [500] } },
    ],
  ])(
    "passes on the error if next %s, so that the framework can handle it",
    async (_, next, rule) => {
      const { send } = inFrontOf(next, rule);
      await expect(send()).rejects.toBe(fault);
    },
  );

  it.each([
    ["a rule whose cost is in the response", { cost: "header:x-cost" }, ["fault", "fault", 429]],
    ["a rule that counts the status 500", { count: { status: [500] } }, ["fault", "fault", 429]],
    ["a rule that counts other responses", { count: { status: [401] } }, Array(3).fill("fault")],
  ] as const)("charges an error of next as a 500: %s", async (_, rule, outcomes) => {
    const { send } = inFrontOf(() => Promise.reject(fault), rule);
    const seen = [];
    for (let sent = 0; sent < 3; sent++) {
      seen.push(
        await send().then(
          ({ response }) => response.status,
          (error: unknown) => (error === fault ? "fault" : error),
        ),
      );
    }
    expect(seen).toEqual(outcomes);
  });

  it.each([undefined, null, "text", {}])("names the mistake if next returns %o", async (value) => {
    const { send } = inFrontOf(() => value as never);
    await expect(send()).rejects.toThrow(
      "The argument next of weir(config).fetch returned no Response",
    );
  });

  it("ignores the origin, and does not log that its binding is missing", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    const { send } = inFrontOf(() => new Response(), {}, { origin: { binding: "MISSING" } });
    expect((await send("/", {}, { ORIGIN_URL: "not a URL" })).response.status).toBe(200);
    expect(logged).not.toHaveBeenCalled();
  });

  it("passes an undecided request to next or answers it, depending on the rule's onError", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const next = vi.fn(() => new Response());
    const store = "upstash";
    const open = inFrontOf(next, {}, { store });
    expect((await open.send()).response.status).toBe(200);
    const closed = inFrontOf(next, { onError: "closed" }, { store });
    expect((await closed.send()).response.status).toBe(503);
    expect(next).toHaveBeenCalledTimes(1);
  });

  it("shares its counters with calls without next", async () => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("origin"));
    const { fetch } = weir({ store: "memory", rules: [RULE] });
    const call = (next?: Next) =>
      fetch(new Request("https://app.example.com/") as never, {}, createExecutionContext(), next);
    expect(await (await call()).text()).toBe("origin");
    expect(await (await call(() => new Response("app"))).text()).toBe("app");
    expect((await call()).status).toBe(429);
  });

  it("works without bindings and context", async () => {
    const { fetch } = weir({ store: "memory", rules: [RULE] });
    const request = new Request("https://app.example.com/") as never;
    const response = await fetch(request, undefined, undefined, () => new Response("app"));
    expect(await response.text()).toBe("app");
  });

  it("makes a request undecided if there are no bindings for its store", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    const { fetch } = weir({ rules: [RULE] });
    const request = new Request("https://app.example.com/") as never;
    const response = await fetch(request, undefined, undefined, () => new Response("app"));
    expect(await response.text()).toBe("app");
    expect(logged).toHaveBeenCalledWith(expect.stringContaining("misconfigured"));
  });
});

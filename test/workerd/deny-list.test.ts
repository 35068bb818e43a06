import { createExecutionContext, env } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { RuleInput } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const BINDINGS = {
  UPSTASH_REDIS_REST_URL: "https://redis.example",
  UPSTASH_REDIS_REST_TOKEN: "token",
};

const RULES: RuleInput[] = [
  {
    name: "abuse",
    match: { ips: ["198.51.100.0/24", "2001:db8:bad::/48"] },
    limit: 0,
    window: "1d",
    response: { status: 403, body: { error: "forbidden" } },
  },
  { name: "site", limit: 100, window: "1m", onError: "closed" },
];

const DENY_PREFLIGHTS: RuleInput = {
  name: "abusive-preflights",
  match: { methods: ["OPTIONS"], ips: ["198.51.100.0/24"] },
  limit: 0,
  window: "1d",
};

/** Sends a request from an address, and records all calls of the store and of the app. */
async function send(
  store: "upstash" | "durable-object",
  address: string,
  init: { method?: string; headers?: Record<string, string>; rules?: RuleInput[] } = {},
) {
  const redis = vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no network"));
  const getByName = vi.fn(() => {
    throw new Error("no objects");
  });
  const COUNTERS = { getByName, get: getByName, idFromName: getByName };
  const app = vi.fn(() => new Response("page"));
  const { fetch } = weir({ store, rules: [...RULES, ...(init.rules ?? [])] });
  const { method = "GET" } = init;
  const headers = { ...init.headers, ...(address !== "" && { "cf-connecting-ip": address }) };
  const response = await fetch(
    new Request("https://app.example.com/", { method, headers }) as never,
    { ...BINDINGS, COUNTERS: store === "upstash" ? env.COUNTERS : COUNTERS } as never,
    createExecutionContext(),
    app as never,
  );
  return { response, calls: redis.mock.calls.length + getByName.mock.calls.length, app };
}

describe.each(["upstash", "durable-object"] as const)("a deny list with store: %s", (store) => {
  it.each(["198.51.100.7", "2001:db8:bad:1::2", "::ffff:198.51.100.7", ""])(
    "denies the client %j with its own response, and without a call to the store or the app",
    async (address) => {
      const { response, calls, app } = await send(store, address);
      expect(response.status).toBe(403);
      expect(await response.json()).toEqual({ error: "forbidden" });
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("retry-after")).toBeNull();
      expect(response.headers.get("ratelimit-policy")).toBe('"abuse";q=0;w=86400');
      expect(calls).toBe(0);
      expect(app).not.toHaveBeenCalled();
    },
  );

  it("denies CORS preflights only by a rule that names OPTIONS", async () => {
    const headers = { origin: "https://shop.example", "access-control-request-method": "GET" };
    const preflight = { method: "OPTIONS", headers };
    const passed = await send(store, "198.51.100.7", preflight);
    expect(passed.response.status).toBe(200);
    const denied = await send(store, "198.51.100.7", { ...preflight, rules: [DENY_PREFLIGHTS] });
    expect([denied.response.status, denied.calls]).toEqual([429, 0]);
    expect(denied.app).not.toHaveBeenCalled();
  });

  it("calls the store for all other clients", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const { response, calls } = await send(store, "203.0.113.7");
    // The store cannot be reached, and the rule "site" fails closed.
    expect(response.status).toBe(503);
    expect(calls).toBeGreaterThan(0);
  });
});

import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { RateLimitError, WeirService, weir } from "../../../src/index.ts";

// What clients, other Workers and operators see of `onError: "local"`. The store is misconfigured
// here, which is as good as away.

const RULE = { name: "api", limit: 8, window: "1h", onError: "local" } as const;

let now = 1_700_000_100_000;

beforeEach(() => {
  // An isolate tells of outages once in ten seconds, and all tests are in one: each has its own hour.
  now += 3_600_000;
  vi.useFakeTimers({ toFake: ["Date"], now });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function configOf(options: Partial<ConfigInput> = {}) {
  return defineConfig({ store: "upstash", rules: [RULE], ...options });
}

/** What is logged, but for the bindings' faults. */
function logged() {
  const lines: unknown[] = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line: string) => {
      const parsed = JSON.parse(line);
      if (parsed.weir !== "misconfigured") lines.push(parsed);
    });
  }
  return lines;
}

describe("a Worker", () => {
  function worker(options: Partial<ConfigInput> = {}, env: Record<string, unknown> = {}) {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("the origin's"));
    const { fetch } = weir(configOf(options));
    return () =>
      fetch(
        new Request("https://api.example.com/", {
          headers: { "cf-connecting-ip": "203.0.113.7" },
        }) as never,
        env,
        createExecutionContext(),
      );
  }

  it("forwards what has room here, without figures, and denies the rest with them", async () => {
    const lines = logged();
    const send = worker();
    for (let sent = 0; sent < 2; sent++) {
      const response = await send();
      expect(response.status).toBe(200);
      expect([...response.headers.keys()].filter((name) => name.includes("rate"))).toEqual([]);
    }
    const denied = await send();
    expect(denied.status).toBe(429);
    expect(Number(denied.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await denied.json()).toMatchObject({
      detail: expect.stringContaining('The quota "api" of 8 per 1h is used up.'),
      "violated-policies": ["api"],
    });
    expect(lines).toEqual([
      {
        weir: "undecided",
        cause: "misconfigured",
        detail: "UPSTASH_REDIS_REST_URL is not set",
        requests: "counted locally",
      },
    ]);
  });

  it("denies what its native limiter denies, in the same words", async () => {
    logged();
    const limit = vi.fn(async () => ({ success: false }));
    const send = worker({ nativeLimiter: { binding: "NATIVE" } }, { NATIVE: { limit } });
    const denied = await send();
    expect(denied.status).toBe(429);
    expect(denied.headers.get("retry-after")).toBe("60");
    expect(await denied.json()).toMatchObject({ "violated-policies": ["api"] });
    expect(limit).toHaveBeenCalledOnce();
  });

  it("charges here what a response turned out to cost", async () => {
    logged();
    const send = worker({ rules: [{ ...RULE, cost: "header:x-cost" }] });
    const costing = () => new Response(null, { headers: { "x-cost": "2" } });
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => costing());
    expect((await send()).status).toBe(200);
    expect((await send()).status).toBe(429);
  });
});

describe("a service", () => {
  function serviceOf(options: Partial<ConfigInput> = {}) {
    const config = configOf(options);
    class Limits extends WeirService {
      readonly config = config;
    }
    return new Limits(createExecutionContext(), {});
  }

  it("grants and denies without figures, and says that the store was away", async () => {
    logged();
    const service = serviceOf();
    const granted = { ok: true, undecided: "misconfigured" };
    expect(await service.check("api")).toEqual(granted);
    expect(await service.limit("api")).toEqual(granted);
    expect(await service.limit("api")).toEqual(granted);
    expect(await service.limit("api")).toEqual({ ok: false, undecided: "misconfigured" });
    expect(await service.check("api")).toEqual({ ok: false, undecided: "misconfigured" });
    expect(await service.limit("api", { cost: -1 })).toEqual(granted);
  });

  it("throws a denial where it is asked to, and says when there will be room", async () => {
    logged();
    const service = serviceOf({ rules: [{ ...RULE, limit: 0 }] });
    const error = await service.limit("api", { throws: true }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error.retryAfterMs).toBeGreaterThan(0);
  });

  it("does not tell what was counted locally for what a client has left", async () => {
    logged();
    const service = serviceOf();
    await expect(service.getValue("api")).rejects.toThrow(
      'The rule "api" could not be read: misconfigured, UPSTASH_REDIS_REST_URL is not set.',
    );
  });
});

import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { RateLimitError, WeirService, weir } from "../../../src/index.ts";

// These tests check the answers and log lines with `onError: "local"`. The store is misconfigured,
// so it never decides.

const RULE = { name: "api", limit: 8, window: "1h", onError: "local" } as const;

let now = 1_700_000_100_000;

beforeEach(() => {
  // All tests run in one isolate, which logs outages at most once in ten seconds. So each test runs
  // in its own hour.
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

/** Collects the log lines, except those that report misconfigured bindings. */
function captureLog() {
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

  it("forwards requests without RateLimit fields up to the local quota, and denies others", async () => {
    const lines = captureLog();
    const send = worker();
    for (let requests = 0; requests < 2; requests++) {
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
    expect(lines).toMatchObject([
      {
        weir: "undecided",
        cause: "misconfigured",
        detail: "UPSTASH_REDIS_REST_URL is not set",
        requests: "counted locally",
      },
      { weir: "denied", mode: "local", rule: "api", policy: "api", cost: 1 },
    ]);
  });

  it("denies a request that the native limiter denies, with the same response", async () => {
    captureLog();
    const limit = vi.fn(async () => ({ success: false }));
    const send = worker({ nativeLimiter: { binding: "NATIVE" } }, { NATIVE: { limit } });
    const denied = await send();
    expect(denied.status).toBe(429);
    expect(denied.headers.get("retry-after")).toBe("60");
    expect(await denied.json()).toMatchObject({ "violated-policies": ["api"] });
    expect(limit).toHaveBeenCalledOnce();
  });

  it("charges the cost of a response locally", async () => {
    captureLog();
    const send = worker({ rules: [{ ...RULE, cost: "header:x-cost" }] });
    const costlyResponse = () => new Response(null, { headers: { "x-cost": "2" } });
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => costlyResponse());
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

  it("returns no quotas when it grants or denies, and returns why the store did not decide", async () => {
    captureLog();
    const service = serviceOf();
    const granted = { ok: true, undecided: "misconfigured" };
    expect(await service.check("api")).toEqual(granted);
    expect(await service.limit("api")).toEqual(granted);
    expect(await service.limit("api")).toEqual(granted);
    expect(await service.limit("api")).toEqual({ ok: false, undecided: "misconfigured" });
    expect(await service.check("api")).toEqual({ ok: false, undecided: "misconfigured" });
    expect(await service.limit("api", { cost: -1 })).toEqual(granted);
  });

  it("throws a RateLimitError with the time to wait if throws is set", async () => {
    captureLog();
    const service = serviceOf({ rules: [{ ...RULE, limit: 1 }] });
    await service.limit("api");
    const error = await service.limit("api", { throws: true }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error.retryAfterMs).toBeGreaterThan(0);
  });

  it("returns the reason and no time for a cost above the limit of the rule", async () => {
    captureLog();
    const service = serviceOf({ rules: [{ ...RULE, limit: 8, capacity: 20 }] });
    const undecided = "misconfigured";
    expect(await service.limit("api", { cost: 21 })).toEqual({
      ok: false,
      undecided,
      reason: "exceeds-limit",
    });
    // The store would admit it, so it may pass after the outage.
    expect(await service.limit("api", { cost: 20 })).toEqual({ ok: false, undecided });
    const error = await service.limit("api", { cost: 21, throws: true }).catch((thrown) => thrown);
    expect(error).toMatchObject({ name: "RateLimitError", reason: "exceeds-limit" });
  });

  it("does not return local counts as the quota of a client", async () => {
    captureLog();
    const service = serviceOf();
    await expect(service.getValue("api")).rejects.toThrow(
      'The rule "api" could not be read: misconfigured, UPSTASH_REDIS_REST_URL is not set.',
    );
  });
});

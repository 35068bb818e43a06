import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const RULE = { name: "api", match: { paths: ["/api"] }, limit: 1, window: "1h" } as const;
const STORE = /^weir;dur=\d+;desc="store"$/;
const MEMORY = /^weir;dur=\d+;desc="memory"$/;

/** Returns a function that sends a request from a page of another origin. */
function worker(options: Partial<ConfigInput> = {}, originFields: Record<string, string> = {}) {
  vi.spyOn(globalThis, "fetch").mockImplementation(
    async () => new Response("origin", { headers: originFields }),
  );
  const prefix = crypto.randomUUID();
  const config: ConfigInput = {
    store: "durable-object",
    prefix,
    rules: [RULE],
    serverTiming: true,
    ...options,
  };
  const { fetch } = weir(config);
  return async (path = "/api") => {
    const headers = { "cf-connecting-ip": "203.0.113.7", origin: "https://app.example.com" };
    const request = new Request(`https://api.example.com${path}`, { headers });
    return fetch(request as never, { COUNTERS: env.COUNTERS }, createExecutionContext());
  };
}

const timing = (response: Response) => response.headers.get("server-timing");
const exposed = (response: Response) => response.headers.get("access-control-expose-headers");

describe("Server-Timing", () => {
  it("shows the duration of the decision in responses of the origin and in denials", async () => {
    const send = worker();
    const [admitted, denied] = [await send(), await send()];
    expect([admitted.status, denied.status]).toEqual([200, 429]);
    expect(timing(admitted)).toMatch(STORE);
    expect(timing(denied)).toMatch(STORE);
    expect(await admitted.text()).toBe("origin");
  });

  it("is missing if it is not configured, or if no rule applies", async () => {
    expect(timing(await worker({ serverTiming: false })())).toBe(null);
    expect(timing(await worker()("/other"))).toBe(null);
  });

  it("comes after the metrics of the origin", async () => {
    const response = await worker({}, { "server-timing": "db;dur=53" })();
    expect(timing(response)).toMatch(/^db;dur=53, weir;dur=/);
  });

  it("is part of a response to an undecided request", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const rule = { ...RULE, onError: "closed" } as const;
    const response = await worker({ store: "upstash", rules: [rule] })();
    expect(response.status).toBe(503);
    expect(timing(response)).toMatch(STORE);
  });

  it("can be read by pages of other origins where they can read the quota fields", async () => {
    const allowed = { "access-control-allow-origin": "*" };
    expect(exposed(await worker({}, allowed)())).toContain("Server-Timing");
    expect(exposed(await worker({}, {})())).toBe(null);
    const send = worker();
    await send();
    expect(exposed(await send())).toContain("Server-Timing");
  });

  it("is part of the responses of a Hono app", async () => {
    const app = new Hono();
    app.use(rateLimit({ store: "memory", rules: [RULE], serverTiming: true }));
    app.get("/api", (c) => c.text("app"));
    const response = await app.request(
      "/api",
      { headers: { "cf-connecting-ip": "203.0.113.7" } },
      {},
      createExecutionContext(),
    );
    expect(timing(response)).toMatch(MEMORY);
  });
});

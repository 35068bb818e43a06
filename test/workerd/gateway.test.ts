import { createExecutionContext } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type CustomKeys,
  defineConfig,
  type RuleInput as RuleFields,
} from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

type RuleInput = Omit<RuleFields, "name">;

/**
 * Creates a Worker with one rule and a memory store. Returns a function that sends it a request.
 */
function worker(rule: RuleInput, origin: (request: Request) => Response, keys: CustomKeys = {}) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    return origin(new Request(input, init));
  });
  const rules = [{ name: "api", ...rule }];
  const { fetch } = weir(defineConfig({ store: "memory", rules, custom: { keys } }));
  return (headers: Record<string, string> = {}, path = "/") =>
    fetch(
      new Request(`https://api.example.com${path}`, { headers }) as never,
      { INTERNAL: "let-me-pass" },
      createExecutionContext(),
    );
}

const ok = () => new Response();

async function statusesOf(responses: (Response | Promise<Response>)[]) {
  return (await Promise.all(responses)).map(({ status }) => status);
}

describe("a rule that counts failed responses", () => {
  const rule = { limit: 2, window: "1h", count: { status: [401] } } as const;

  it("charges a failure, shows the charge in the same response, and then denies a request", async () => {
    let status = 200;
    const send = worker(rule, () => new Response(null, { status }));
    const rateLimitField = async () => (await send()).headers.get("ratelimit");
    expect(await rateLimitField()).toMatch(/^"api";r=2;t=\d+$/);
    status = 401;
    expect(await rateLimitField()).toMatch(/^"api";r=1;t=\d+$/);
    expect(await rateLimitField()).toMatch(/^"api";r=0;t=\d+$/);
    expect((await send()).status).toBe(429);
  });
});

describe("a rule whose cost is in the response of the origin", () => {
  it("charges that cost, and denies when no quota is left", async () => {
    const rule = { limit: 100, window: "1h", cost: "header:x-cost" } as const;
    const send = worker(rule, () => new Response(null, { headers: { "x-cost": "60" } }));
    const response = await send();
    expect(response.headers.get("ratelimit")).toMatch(/^"api";r=40;/);
    expect(response.headers.get("x-cost")).toBe("60");
    expect((await send()).headers.get("ratelimit")).toMatch(/^"api";r=0;/);
    expect((await send()).status).toBe(429);
  });
});

describe("a request that costs more than the quota left", () => {
  it("gets a denial that names the quota left", async () => {
    const send = worker({ limit: 10, window: "1h", cost: 6 }, ok);
    expect((await send()).status).toBe(200);
    expect(await (await send()).json()).toMatchObject({
      detail: expect.stringMatching(/^The quota "api" of 10 per 1h has only 4 left\. Try again in/),
    });
  });
});

describe("a rule with exemptions", () => {
  const rule = {
    limit: 1,
    window: "1h",
    exempt: { ips: ["198.51.100.0/24"], headers: { "x-internal": { secret: "INTERNAL" } } },
  };

  it("neither counts nor limits an exempt client", async () => {
    const send = worker(rule, ok);
    for (const headers of [
      { "cf-connecting-ip": "198.51.100.9" },
      { "cf-connecting-ip": "203.0.113.7", "x-internal": "let-me-pass" },
    ]) {
      expect(await statusesOf([send(headers), send(headers), send(headers)])).toEqual([
        200, 200, 200,
      ]);
      expect((await send(headers)).headers.has("ratelimit")).toBe(false);
    }
    const other = { "cf-connecting-ip": "203.0.113.7", "x-internal": "let-me-guess" };
    expect((await send(other)).status).toBe(200);
    expect((await send(other)).status).toBe(429);
  });
});

describe("a rule with tiers", () => {
  it("applies the limit of the client's tier, under the same policy name", async () => {
    const rule = {
      key: "header:x-api-key",
      limit: 1,
      window: "1h",
      tiers: { by: "header:x-plan", limits: { pro: { limit: 3, window: "1h" } } },
    };
    const send = worker(rule, ok);
    const free = { "x-api-key": "a", "x-plan": "free" };
    const pro = { "x-api-key": "b", "x-plan": "pro" };
    expect((await send(free)).headers.get("ratelimit-policy")).toBe('"api";q=1;w=3600');
    expect((await send(free)).status).toBe(429);
    expect((await send(pro)).headers.get("ratelimit-policy")).toBe('"api";q=3;w=3600');
    expect((await send(pro)).status).toBe(200);
  });
});

describe("a rule with a custom key", () => {
  it("uses the text that the function returns as the key, or the address if it returns none", async () => {
    const keys = { tenant: (request: Request) => new URL(request.url).pathname.split("/")[1] };
    const send = worker({ key: "custom:tenant", limit: 1, window: "1h" }, ok, keys);
    expect((await send({}, "/a/1")).status).toBe(200);
    expect((await send({}, "/a/2")).status).toBe(429);
    expect((await send({}, "/b/1")).status).toBe(200);
    expect((await send({ "cf-connecting-ip": "203.0.113.1" })).status).toBe(200);
    expect((await send({ "cf-connecting-ip": "203.0.113.2" })).status).toBe(200);
    expect((await send({ "cf-connecting-ip": "203.0.113.2" })).status).toBe(429);
  });
});

describe("a rule with jitter", () => {
  it("adds at most the jitter to Retry-After, which never ends before the window", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    const send = worker({ limit: 1, window: "1h", retryJitter: "10m" }, ok);
    await send();
    const reset = 2700;
    for (const [random, least] of [
      [0, 0],
      [0.5, 300],
      [0.999, 599],
    ] as const) {
      vi.spyOn(Math, "random").mockReturnValue(random);
      const response = await send();
      const seconds = response.headers.get("retry-after");
      expect(response.headers.get("ratelimit")).toBe(`"api";r=0;t=${seconds}`);
      const addedSeconds = Number(seconds) - reset;
      expect(addedSeconds).toBeGreaterThanOrEqual(least);
      expect(addedSeconds).toBeLessThanOrEqual(least + 1);
    }
  });
});

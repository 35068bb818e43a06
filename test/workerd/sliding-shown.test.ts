import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../src/config/index.ts";
import { weir } from "../../src/index.ts";

/** 2023-11-14T22:15:57Z: in the last of ten parts of a minute. */
const NOW = 1_700_000_157_000;
const LOGIN: RuleInput = { name: "login", limit: 5, window: "1m", sliding: true };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function worker(...rules: RuleInput[]) {
  const { fetch } = weir(defineConfig({ store: "memory", quotaPath: "/quota", rules }));
  return (path = "/") => {
    const headers = { "cf-connecting-ip": "203.0.113.7" };
    const request = new Request(`https://api.example.com${path}`, { headers });
    return fetch(request as never, {}, createExecutionContext(), async () => new Response("ok"));
  };
}

describe("a sliding window", () => {
  it("shows both numbers in its policy, what is left, and when there is more", async () => {
    const send = worker(LOGIN);
    const first = await send();
    expect(first.headers.get("ratelimit-policy")).toBe('"login";q=5;w=60;weir-even=4.5');
    // The oldest sub-window that counts began at 22:15:54, and does not count from 22:17:00 on.
    expect(first.headers.get("ratelimit")).toBe('"login";r=4;t=63');
    vi.setSystemTime(NOW + 5000);
    for (let request = 0; request < 4; request++) await send();
    const denial = await send();
    expect(denial.status).toBe(429);
    expect(denial.headers.get("ratelimit")).toBe('"login";r=0;t=58');
    expect(denial.headers.get("retry-after")).toBe("58");
    expect(await denial.json()).toMatchObject({
      detail: expect.stringContaining('The quota "login" of 5 in any 1m is used up'),
    });
    vi.setSystemTime(NOW + 62_999);
    expect((await send()).status).toBe(429);
    vi.setSystemTime(NOW + 63_000);
    expect((await send()).status).toBe(200);
    expect((await send()).headers.get("retry-after")).toBe("6");
  });

  it("names itself to a client that asks for its quotas", async () => {
    const send = worker(LOGIN);
    await send();
    expect(await (await send("/quota")).json()).toMatchObject({
      limits: [{ policy: "login", limit: 5, remaining: 4, sliding: true, window: 60, reset: 63 }],
    });
  });

  it("says that no request fits if its limit is 0", async () => {
    const denial = await worker({ ...LOGIN, limit: 0 })();
    expect(await denial.json()).toMatchObject({
      detail: expect.stringContaining('The quota "login" of 0 in any 1m admits no request'),
    });
  });
});

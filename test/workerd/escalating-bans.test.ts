import { createExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../src/config/index.ts";
import { rateLimit, WeirService, weir } from "../../src/index.ts";

const NOW = 1_700_000_100_000;
const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

type Rule = RuleInput;

const LOGIN = { name: "login", limit: 1, window: "1m", ban: ["2m", "10m", "1h"] } as const;

/** Returns the three ways into Weir for a rule. Each returns the seconds until a retry; 0 if admitted. */
function waysIn(fields: Partial<Rule> = {}) {
  const config = defineConfig({ store: "memory", rules: [{ ...LOGIN, ...fields } as Rule] });
  const handler = weir(config);
  const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("app"));
  class Limits extends WeirService {
    readonly config = config;
  }
  const request = () =>
    new Request("https://a.example/", { headers: { "cf-connecting-ip": "203.0.113.9" } });
  const retryOf = (response: Response) => Number(response.headers.get("retry-after") ?? 0);
  const ctx = createExecutionContext;
  return {
    gateway: async () =>
      retryOf(await handler.fetch(request() as never, {}, ctx(), () => new Response("app"))),
    middleware: async () => retryOf(await app.fetch(request(), {}, ctx())),
    program: async () => {
      const result = await new Limits(ctx(), {}).limit("login");
      return result.ok ? 0 : (result.retryAfterMs as number) / 1000;
    },
    service: () => new Limits(ctx(), {}),
  };
}

describe("bans that become longer", () => {
  it.each(["gateway", "middleware", "program"] as const)(
    "set the time until a retry to the actual length: %s",
    async (way) => {
      const send = waysIn()[way];
      expect([await send(), await send(), await send()]).toEqual([0, 120, 120]);
      vi.setSystemTime(NOW + 2 * MINUTE);
      expect([await send(), await send()]).toEqual([0, 600]);
      vi.setSystemTime(NOW + 12 * MINUTE);
      expect([await send(), await send()]).toEqual([0, 3600]);
      vi.setSystemTime(NOW + 72 * MINUTE);
      expect([await send(), await send()]).toEqual([0, 3600]);
      // The strikes are forgotten an hour after the end of the last ban.
      vi.setSystemTime(NOW + 132 * MINUTE + 60 * MINUTE);
      expect([await send(), await send()]).toEqual([0, 120]);
    },
  );

  it("show that no quota is left while the client is banned", async () => {
    const { program, service } = waysIn();
    await program();
    await program();
    vi.setSystemTime(NOW + MINUTE);
    expect(await service().getValue("login")).toMatchObject([
      { remaining: 0, retryAfterMs: MINUTE },
    ]);
  });

  it("are not started by checks, and begin with the first length after a reset", async () => {
    const { program, service } = waysIn();
    await program();
    for (let checks = 0; checks < 3; checks++) {
      expect(await service().check("login")).toMatchObject({ ok: false, retryAfterMs: MINUTE });
    }
    expect(await program()).toBe(120);
    vi.setSystemTime(NOW + 2 * MINUTE);
    await program();
    expect(await program()).toBe(600);
    await service().reset("login");
    expect([await program(), await program()]).toEqual([0, 120]);
  });

  it("deny nothing in shadow mode", async () => {
    vi.spyOn(console, "log").mockReturnValue();
    const { gateway } = waysIn({ mode: "shadow" });
    expect([await gateway(), await gateway(), await gateway()]).toEqual([0, 0, 0]);
  });

  it("have strikes for each window, and the longer ban counts", async () => {
    const { limit, window, ...rule } = LOGIN;
    const limits = [
      { limit: 1, window: "1m" },
      { limit: 2, window: "1h" },
    ];
    const config = defineConfig({ store: "memory", rules: [{ ...rule, limits }] });
    const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("app"));
    const send = async () => Number((await app.request("/")).headers.get("retry-after") ?? 0);
    // Only the minute is exceeded.
    expect([await send(), await send()]).toEqual([0, 120]);
    vi.setSystemTime(NOW + 2 * MINUTE);
    // The second request exceeds both windows: the second strike of the minute, the first of the hour.
    expect(await send()).toBe(0);
    const denied = await app.request("/");
    expect(denied.headers.get("ratelimit")).toMatch(/"login\/1m";r=0;.*"login\/1h";r=0;/);
    const hourEndsIn = 3600 - (((NOW + 2 * MINUTE) / 1000) % 3600);
    expect(Number(denied.headers.get("retry-after"))).toBe(Math.max(600, hourEndsIn));
  });

  it("apply to rules whose cost depends on the response", async () => {
    const rule = { ...LOGIN, count: { status: [401] } };
    const config = defineConfig({ store: "memory", rules: [rule] });
    const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("no", 401));
    const send = async () => {
      const { status, headers } = await app.request("/");
      return [status, Number(headers.get("retry-after") ?? 0)];
    };
    expect([await send(), await send(), await send()]).toEqual([
      [401, 0],
      [429, 120],
      [429, 120],
    ]);
    vi.setSystemTime(NOW + 2 * MINUTE);
    expect([await send(), await send()]).toEqual([
      [401, 0],
      [429, 600],
    ]);
  });

  it("begin with the first length in an isolate that counts alone", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const rule = { ...LOGIN, onError: "local", localShare: 1 } as const;
    const config = defineConfig({ store: "durable-object", rules: [rule] });
    const app = new Hono().use(rateLimit(config)).all("*", (c) => c.text("app"));
    const send = async () => Number((await app.request("/")).headers.get("retry-after") ?? 0);
    expect([await send(), await send()]).toEqual([0, 120]);
    vi.setSystemTime(NOW + 2 * MINUTE);
    expect([await send(), await send()]).toEqual([0, 600]);
  });
});

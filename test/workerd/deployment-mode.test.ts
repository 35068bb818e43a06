import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import {
  type LimitGranted,
  type RateLimitVariables,
  rateLimit,
  WeirService,
  weir,
} from "../../src/index.ts";
import { PATIENCE } from "../patience.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const ONE = { name: "one", limit: 1, window: "1h" } as const;
const NONE = { name: "none", limit: 0, window: "1h" } as const;

/** Collects the lines that Weir logs. */
function logged() {
  const lines: Record<string, unknown>[] = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => {
      lines.push({ level, ...JSON.parse(line) });
    });
  }
  return lines;
}

/** Returns a function that sends a request through each of the ways into Weir, with this mode. */
function waysIn(rules: ConfigInput["rules"], mode: unknown, options: Partial<ConfigInput> = {}) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("origin"));
  const prefix = crypto.randomUUID();
  // All tests share one isolate, and so its number of log lines.
  const store = "durable-object";
  // On a busy machine, the store may miss the default deadline of a second.
  const timeoutMs = 30_000;
  const config = defineConfig({ store, prefix, denialLog: 1000, timeoutMs, ...options, rules });
  const bindings = { COUNTERS: env.COUNTERS, WEIR_MODE: mode };
  const handler = weir(config);
  const app = new Hono<{ Bindings: object; Variables: RateLimitVariables }>();
  app.use(rateLimit(config));
  app.all("*", (c) => c.json(c.get("rateLimit")));
  class Limits extends WeirService {
    readonly config = config;
  }
  const service = () => new Limits(createExecutionContext(), bindings);
  async function send(way: "gateway" | "next" | "middleware", path = "/", fields = {}) {
    const headers = { "cf-connecting-ip": "203.0.113.7", ...fields };
    const request = new Request(`https://api.example.com${path}`, { headers });
    const ctx = createExecutionContext();
    const response = await (way === "middleware"
      ? app.fetch(request, bindings, ctx)
      : handler.fetch(
          request as never,
          bindings,
          ctx,
          way === "next" ? () => new Response("app") : undefined,
        ));
    await waitOnExecutionContext(ctx);
    return response;
  }
  return { send, service };
}

const WAYS = ["gateway", "next", "middleware"] as const;
const SHADOW_LINE = { level: "error", weir: "mode", mode: "shadow" };
const OFF_LINE = { level: "error", weir: "mode", mode: "off" };
const DENIED = { level: "log", weir: "denied", mode: "shadow", policy: "one" };

describe("WEIR_MODE=shadow", () => {
  it.each(WAYS)("denies nothing, shows nothing and logs what it would deny: %s", async (way) => {
    const lines = logged();
    const { send } = waysIn([ONE], "shadow");
    for (let sent = 0; sent < 3; sent++) {
      const response = await send(way);
      expect(response.status).toBe(200);
      expect(response.headers.has("ratelimit")).toBe(false);
      expect(await response.text()).toBe({ gateway: "origin", next: "app", middleware: "[]" }[way]);
    }
    await expect.poll(() => lines).toMatchObject([SHADOW_LINE, DENIED, DENIED]);
  });

  it("settles the reserve of a client that is identified after the response", async () => {
    logged();
    const cost = { reserve: 100, settle: "header:x-used" } as const;
    const rules = [
      { name: "tokens", key: "custom:slow", limit: 1000, window: "month", cost },
    ] as const;
    const slow = () => new Promise<string>((resolve) => setTimeout(() => resolve("a"), 60));
    const { send, service } = waysIn(rules, "shadow", { custom: { keys: { slow } } });
    vi.mocked(globalThis.fetch).mockImplementation(
      async () => new Response("origin", { headers: { "x-used": "10" } }),
    );
    for (let sent = 0; sent < 3; sent++) await send("gateway");
    const remaining = async () => (await service().getValue("tokens", { key: "a" }))[0]?.remaining;
    await expect.poll(remaining).toBe(970);
  });

  it("leaves rules in shadow mode in shadow mode, and includes deny lists, bans and marks", async () => {
    const lines = logged();
    const { send } = waysIn(
      [
        { ...NONE, name: "shadowed", mode: "shadow" },
        { ...NONE, name: "denied", response: { status: 403 } },
        { ...NONE, name: "banned", ban: ["1m", "1h"] },
        { ...NONE, name: "marked", mode: "mark" },
      ],
      "shadow",
    );
    expect((await send("gateway", "/", { "weir-over": "forged" })).status).toBe(200);
    const policies = () => lines.flatMap(({ policy }) => (policy === undefined ? [] : [policy]));
    await expect.poll(policies).toEqual(["shadowed", "denied", "banned", "marked"]);
    const [forwarded] = vi.mocked(globalThis.fetch).mock.lastCall as unknown as [Request];
    expect([...forwarded.headers.keys()].filter((name) => name.startsWith("weir"))).toEqual([]);
  });

  it.each(["closed", "local"] as const)(
    "lets requests pass that the store cannot decide, with onError: %s",
    async (onError) => {
      const lines = logged();
      const { send } = waysIn([{ ...NONE, onError }], "shadow", { store: "upstash" });
      expect((await send("gateway")).status).toBe(200);
      // An isolate logs outages once in ten seconds, so the line `undecided` may be missing.
      expect(lines.slice(0, 2)).toMatchObject([{ weir: "misconfigured" }, SHADOW_LINE]);
    },
  );

  it.each(WAYS)("lets requests pass whose paths are too long to be read: %s", async (way) => {
    logged();
    const path = `/${"%41;a=b/".repeat(2000)}`;
    expect((await waysIn([NONE], "enforce").send(way, path)).status).toBe(414);
    expect((await waysIn([NONE], "shadow").send(way, path)).status).toBe(200);
    expect((await waysIn([NONE], "off").send(way, path)).status).toBe(200);
  });

  it("does not wait for a key function that never returns", async () => {
    const lines = logged();
    const keys = { user: () => new Promise<never>(() => {}) };
    const rule = { ...NONE, key: "custom:user", onError: "closed" } as const;
    const { send } = waysIn([rule], "shadow", { custom: { keys }, timeoutMs: 500 });
    expect((await send("gateway")).status).toBe(200);
    // After the deadline, the rule is decided by the client's address, and only logged.
    const denied = { ...DENIED, policy: "none" };
    const expected = expect.objectContaining(denied);
    await vi.waitFor(() => expect(lines).toContainEqual(expected), PATIENCE);
  });

  it("grants the calls of programs, which do not see quotas", async () => {
    const lines = logged();
    const { service } = waysIn([ONE], "shadow");
    const granted = { ok: true, quotas: [] };
    expect(await service().limit("one")).toEqual(granted);
    expect(await service().limit("one", { throws: true })).toEqual(granted);
    expect(await service().check("one", { throws: true })).toEqual(granted);
    expect(await service().getValue("one")).toMatchObject([{ remaining: 0 }]);
    expect(await service().limit("one", { cost: -1 })).toEqual(granted);
    expect(await service().getValue("one")).toMatchObject([{ remaining: 1 }]);
    await expect.poll(() => lines).toMatchObject([SHADOW_LINE, DENIED, DENIED]);
  });
});

describe("WEIR_MODE=off", () => {
  it.each(WAYS)("applies no rule, and calls no store and no function: %s", async (way) => {
    const lines = logged();
    const getByName = vi.spyOn(env.COUNTERS, "getByName");
    const user = vi.fn(() => "user");
    const rules = [NONE, { ...NONE, name: "custom", key: "custom:user" } as const];
    const { send } = waysIn(rules, " OFF ", { custom: { keys: { user } } });
    for (let sent = 0; sent < 2; sent++) {
      const response = await send(way);
      expect(response.status).toBe(200);
      expect(response.headers.has("ratelimit")).toBe(false);
    }
    expect(getByName).not.toHaveBeenCalled();
    expect(user).not.toHaveBeenCalled();
    expect(lines).toEqual([OFF_LINE]);
  });

  it("removes the header fields that tell the origin about quotas, which a client may forge", async () => {
    logged();
    const { send } = waysIn([{ ...ONE, mode: "mark" }], "off");
    for (const path of ["/", `/${"%41;a=b/".repeat(2000)}`]) {
      await send("gateway", path, { "weir-over": "forged", "weir-remaining": "9" });
      const [forwarded] = vi.mocked(globalThis.fetch).mock.lastCall as unknown as [Request];
      const names = [...forwarded.headers.keys()];
      expect(names.filter((name) => name.startsWith("weir"))).toEqual([]);
    }
  });

  it("settles reserves that were charged before the deploy, and gives quota back", async () => {
    logged();
    const cost = { reserve: 3, settle: "header:x-used" } as const;
    const rules = [{ name: "tokens", limit: 9, window: "month", cost }] as const;
    const prefix = crypto.randomUUID();
    const before = waysIn(rules, "enforce", { prefix }).service();
    const granted = await before.limit("tokens");
    const off = waysIn(rules, "off", { prefix }).service();
    const reserved = (granted as LimitGranted).reserved as NonNullable<LimitGranted["reserved"]>;
    expect(await off.settle("tokens", { reserved, used: 2 })).toMatchObject({ ok: true });
    expect(await before.getValue("tokens")).toMatchObject([{ remaining: 7 }]);
    expect(await off.limit("tokens", { cost: -1 })).toMatchObject({ ok: true });
    expect(await before.getValue("tokens")).toMatchObject([{ remaining: 8 }]);
  });

  it("grants the calls of programs without a call to the store", async () => {
    const lines = logged();
    const { service } = waysIn([NONE], "off");
    const getByName = vi.spyOn(env.COUNTERS, "getByName");
    const granted = { ok: true, quotas: [] };
    expect(await service().limit("none", { throws: true })).toEqual(granted);
    expect(await service().check("none", { cost: 5 })).toEqual(granted);
    expect(getByName).not.toHaveBeenCalled();
    await expect(service().limit("unknown")).rejects.toThrow('There is no rule "unknown"');
    expect(lines).toEqual([OFF_LINE]);
  });

  it("still reads and resets quotas", async () => {
    logged();
    const prefix = crypto.randomUUID();
    const enforced = waysIn([ONE], "enforce", { prefix });
    await enforced.service().limit("one");
    const off = waysIn([ONE], "off", { prefix });
    expect(await off.service().getValue("one")).toMatchObject([{ remaining: 0 }]);
    await off.service().reset("one");
    expect(await off.service().getValue("one")).toMatchObject([{ remaining: 1 }]);
  });
});

describe("WEIR_MODE", () => {
  it.each([undefined, "", " ", "enforce", "Enforce"])(
    "with the value %j leaves the rules' own modes",
    async (mode) => {
      const lines = logged();
      const rules = [NONE, { ...NONE, name: "trial", mode: "shadow" } as const];
      expect((await waysIn(rules, mode).send("gateway")).status).toBe(429);
      const enforced = { weir: "denied", mode: "enforce", policy: "none" };
      const trial = { ...DENIED, policy: "trial" };
      await expect.poll(() => lines).toMatchObject([enforced, trial]);
    },
  );

  it.each(["of", "false", "shadow,off", false, true, 0, {}, ["off"]])(
    "with the unknown value %j leaves the limits enforced, and logs a fault",
    async (mode) => {
      const lines = logged();
      for (const way of WAYS) expect((await waysIn([NONE], mode).send(way)).status).toBe(429);
      const fault = "WEIR_MODE is not enforce, shadow or off, so rules are enforced";
      expect(lines.flatMap((line) => line.fault ?? [])).toEqual([fault, fault, fault]);
    },
  );

  it("is logged once in an isolate for all ways into Weir", async () => {
    const lines = logged();
    const { send, service } = waysIn([NONE], "off");
    for (const way of WAYS) await send(way);
    await service().limit("none");
    expect(lines).toEqual([OFF_LINE]);
  });
});

import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { WeirService, weir } from "../../src/index.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import { type Store, StoreError } from "../../src/stores/store.ts";
import { EVERY_STORE, withClock } from "../suite/every-store.ts";
import { shadowResultsOf } from "../verdicts.ts";

const DAY = 86_400_000;
const PLAN = {
  name: "plan",
  limit: 2,
  window: "month",
  timeZone: "Europe/Berlin",
  start: "15 09:00",
} as const;
/** The start and the end of a window of PLAN. The clocks are not changed in this time. */
const START = Date.parse("2026-11-15T08:00:00Z");
const END = Date.parse("2026-12-15T08:00:00Z");

type Rules = ConfigInput["rules"];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("the gateway", () => {
  function worker(rules: Rules, options: Omit<ConfigInput, "rules"> = {}) {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("origin"));
    const { fetch } = weir(defineConfig({ store: "memory", ...options, rules }));
    return () => fetch(new Request("https://example.com/") as never, {}, createExecutionContext());
  }

  it("sends the length of the current window, and Retry-After until its end", async () => {
    const send = worker([PLAN], { headers: "both" });
    const first = await send();
    expect(first.headers.get("RateLimit-Policy")).toBe(`"plan";q=2;w=${(30 * DAY) / 1000}`);
    expect(first.headers.get("RateLimit")).toContain(`"plan";r=1;t=${(30 * DAY) / 1000}`);
    await send();
    vi.setSystemTime(END - 1001);
    const denied = await send();
    expect(denied.status).toBe(429);
    expect(denied.headers.get("Retry-After")).toBe("2");
    expect(denied.headers.get("X-RateLimit-Reset")).toBe(String(END / 1000));
    expect(await denied.json()).toMatchObject({
      detail: 'The quota "plan" of 2 per month is used up. Try again in 2 s.',
    });
    vi.setSystemTime(END - 1);
    expect((await send()).status).toBe(429);
    vi.setSystemTime(END);
    const next = await send();
    expect(next.status).toBe(200);
    expect(next.headers.get("RateLimit-Policy")).toBe(`"plan";q=2;w=${(31 * DAY) / 1000}`);
  });

  it("names the policies of several limits by their windows", async () => {
    const limits = [
      { limit: 5, window: "1m" },
      { limit: 50, window: "day" },
      { limit: 900, window: "month" },
    ] as const;
    const send = worker([{ name: "api", limits, timeZone: "America/New_York" }]);
    const { headers } = await send();
    expect(headers.get("RateLimit-Policy")).toBe(
      '"api/1m";q=5;w=60, "api/day";q=50;w=86400, "api/month";q=900;w=2595600',
    );
  });
});

describe("WeirService", () => {
  function serviceOf(rules: Rules) {
    const config = defineConfig({ store: "memory", rules });
    class Limits extends WeirService {
      readonly config = config;
    }
    return new Limits(createExecutionContext(), {});
  }

  it("returns the unit and the length of the current window", async () => {
    const service = serviceOf([PLAN]);
    const quota = { policy: "plan", limit: 2, windowMs: 30 * DAY, calendar: "month" };
    expect(await service.getValue("plan")).toMatchObject([
      { ...quota, remaining: 2, resetMs: 30 * DAY, resetAt: END },
    ]);
    expect(await service.limit("plan", { cost: 2 })).toMatchObject({ ok: true });
    expect(await service.limit("plan")).toMatchObject({ ok: false, retryAfterMs: 30 * DAY });
  });

  it("resets the windows of all tiers", async () => {
    const limits = {
      pro: { limit: 5, window: "year" },
      team: { limit: 9, window: "month" },
    } as const;
    const service = serviceOf([{ ...PLAN, start: "epoch", tiers: { by: "country", limits } }]);
    for (const tier of ["pro", "team"]) await service.limit("plan", { tier });
    expect(await service.getValue("plan", { tier: "team" })).toMatchObject([{ remaining: 8 }]);
    await service.reset("plan");
    expect(await service.getValue("plan", { tier: "pro" })).toMatchObject([{ remaining: 5 }]);
    expect(await service.getValue("plan", { tier: "team" })).toMatchObject([{ remaining: 9 }]);
  });

  it("reserves quota of later months, which are shorter or longer", async () => {
    const service = serviceOf([{ ...PLAN, start: "1", timeZone: "UTC", maxReserved: 4 }]);
    vi.setSystemTime(Date.UTC(2027, 0, 1));
    await service.limit("plan", { cost: 2 });
    expect(await service.limit("plan", { cost: 2, reserve: true })).toMatchObject({
      ok: true,
      retryAfterMs: 31 * DAY,
    });
    expect(await service.limit("plan", { cost: 2, reserve: true })).toMatchObject({
      ok: true,
      retryAfterMs: (31 + 28) * DAY,
    });
  });
});

describe.each(Object.entries(EVERY_STORE))("a rule with other fields, on %s", (_, createStore) => {
  const clock = { now: START };

  function decideWith(fields: object, wrap: (store: Store) => Store = (store) => store) {
    const rule = { ...PLAN, name: `r${crypto.randomUUID()}`, limit: 4, ...fields };
    const config = defineConfig({ rules: [rule] as Rules });
    const limiter = new Limiter(
      config,
      withClock(wrap(createStore("calendar")), () => clock.now),
    );
    const [parsed] = config.rules;
    if (!parsed) throw new Error("no rule");
    const windows = parsed.tiers?.windows.get("pro") ?? parsed.windows;
    return () => limiter.decide([{ rule: parsed, windows, identity: "someone" }]);
  }

  it.each<[string, object, ((store: Store) => Store)?]>([
    ["none", {}],
    ["one of two shards", { limit: 8, shards: 2 }],
    ["leases", {}, (store) => withLeases(store, { timeoutMs: 1000, background: () => {} })],
    ["the denial cache", {}, (store) => withDenialCache(store)],
    ["several windows", { limit: undefined, window: undefined, limits: limits() }],
    ["tiers", { limit: 9, tiers: { by: "country", limits: { pro: limits()[0] } } }],
    ["shadow mode", { mode: "shadow" }],
  ])("%s", async (_, fields, wrap) => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const decide = decideWith(fields, wrap);
    const admitted = async () => {
      const decision = await decide();
      if (decision.outcome !== "allowed") return false;
      return (await shadowResultsOf(decision)).length === 0;
    };
    const outcomes: boolean[] = [];
    for (const now of [START, START, START + DAY, END - 1, END - 1, END, END + DAY]) {
      clock.now = now;
      outcomes.push(await admitted());
    }
    expect(outcomes).toEqual([true, true, true, true, false, true, true]);
  });

  it("rollover", async () => {
    const decide = decideWith({ limit: 1, capacity: 2 });
    const outcomes: string[] = [];
    for (const now of [START, START, END - 1, END, END]) {
      clock.now = now;
      outcomes.push((await decide()).outcome);
    }
    expect(outcomes).toEqual(["allowed", "allowed", "limited", "allowed", "limited"]);
  });
});

function limits() {
  return [
    { limit: 4, window: "month" },
    { limit: 100, window: "1w" },
  ] as const;
}

it("counts in windows of the calendar while the store fails (onError: local)", async () => {
  const fail = () => Promise.reject(new StoreError("timeout", "away"));
  const config = defineConfig({ rules: [{ ...PLAN, onError: "local", localShare: 1 }] });
  const limiter = new Limiter(config, {
    decide: (groups) => groups.map(fail),
    adjust: fail,
    reset: fail,
  });
  const outcomes: string[] = [];
  for (const now of [START, END - 1, END - 1, END]) {
    vi.setSystemTime(now);
    const applied = config.rules.map((rule) => {
      return { rule, windows: rule.windows, identity: "someone" };
    });
    outcomes.push((await limiter.decide(applied)).outcome);
  }
  expect(outcomes).toEqual(["allowed", "allowed", "limited", "allowed"]);
});

import { createExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../src/config/index.ts";
import { rateLimit, weir } from "../../src/index.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";

// Windows of a calendar together with each feature that also depends on windows.

const HOUR = 3_600_000;

/** Windows, each with its limits in time. On a day on which the clocks change, a day has 23 or 25 hours. */
const WINDOWS = [
  {
    title: "a month of 31 days",
    fields: { window: "month", timeZone: "America/New_York", start: "15 09:00" },
    start: "2026-12-15T14:00:00Z",
    hours: 31 * 24,
  },
  {
    title: "a February that ends",
    fields: { window: "month", start: "31" },
    start: "2027-02-28T00:00:00Z",
    hours: 31 * 24,
  },
  {
    title: "a day of 23 hours",
    fields: { window: "day", timeZone: "Europe/Berlin" },
    start: "2027-03-27T23:00:00Z",
    hours: 23,
  },
  {
    title: "a day of 25 hours",
    fields: { window: "day", timeZone: "Europe/Berlin" },
    start: "2026-10-24T22:00:00Z",
    hours: 25,
  },
] as const;

interface Answer {
  readonly isWithin: boolean;
  readonly headers?: Headers;
}

interface Way {
  readonly fields?: object;
  readonly options?: Partial<ConfigInput>;
  /** Creates a function that sends a request. */
  create(config: ReturnType<typeof defineConfig>): () => Promise<Answer>;
}

const URL = "https://api.example.com/";
const fromClient = () =>
  new Request(URL, {
    headers: { "cf-connecting-ip": "203.0.113.7" },
    cf: { country: "DE" },
  } as never);

const native = { limit: vi.fn(async () => ({ success: true })) };

const gateway =
  (env: object = {}): Way["create"] =>
  (config) => {
    const { fetch } = weir(config);
    return async () => {
      const response = await fetch(fromClient() as never, env, createExecutionContext());
      return { isWithin: response.status === 200, headers: response.headers };
    };
  };

/** The ways in which a limit of 2 for each window is enforced. */
const WAYS: Record<string, Way> = {
  "the gateway": { create: gateway() },
  "the Hono middleware": {
    create(config) {
      const app = new Hono();
      app.use(rateLimit(config));
      app.all("*", (c) => c.text("app"));
      return async () => {
        const { status, headers } = await app.request(fromClient());
        return { isWithin: status === 200, headers };
      };
    },
  },
  "the mode mark": {
    fields: { mode: "mark" },
    create(config) {
      const { fetch } = weir(config);
      return async () => {
        let isWithin = false;
        const { headers } = await fetch(
          fromClient() as never,
          {},
          createExecutionContext(),
          async (admitted: Request) => {
            isWithin = !admitted.headers.has("weir-over");
            return new Response();
          },
        );
        return { isWithin, headers };
      };
    },
  },
  "a tier with the calendar": {
    fields: { limit: 9, window: "1m", tiers: "calendar" },
    create: gateway(),
  },
  // Each shard has a quota of 2, and these tests always draw the first one.
  shards: { fields: { limit: 4, shards: 2 }, create: gateway() },
  "onError: local": {
    fields: { onError: "local", localShare: 1 },
    options: { store: "upstash" },
    create: gateway(),
  },
  "the native limiter": {
    fields: { onError: "local", localShare: 1 },
    options: { store: "upstash", nativeLimiter: { binding: "NATIVE" } },
    create: gateway({ NATIVE: native }),
  },
  leases: {
    create(config) {
      const store = withLeases(createMemoryStore(), { timeoutMs: 1000, background: () => {} });
      const limiter = new Limiter(config, store);
      const applied = config.rules.map((rule) => {
        return { rule, windows: rule.windows, identity: "someone" };
      });
      return async () => ({ isWithin: (await limiter.decide(applied)).outcome === "allowed" });
    },
  },
};

function ruleOf({ fields: window }: (typeof WINDOWS)[number], fields: object = {}): RuleInput {
  const { window: unit, ...zone } = window;
  const rule = { name: "plan", key: "ip", limit: 2, window: unit, ...zone, ...fields };
  const isTier = "tiers" in rule;
  return {
    ...rule,
    ...(isTier && { tiers: { by: "country", limits: { DE: { limit: 2, window: unit } } } }),
  } as unknown as RuleInput;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("origin"));
  vi.spyOn(Math, "random").mockReturnValue(0);
  for (const level of ["log", "error"] as const) vi.spyOn(console, level).mockReturnValue();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe.each(Object.entries(WAYS))("windows of the calendar with %s", (name, way) => {
  it.each(WINDOWS)("end with $title", async (window) => {
    const [start, end] = [Date.parse(window.start), Date.parse(window.start) + window.hours * HOUR];
    vi.setSystemTime(start);
    const rules = [ruleOf(window, way.fields)];
    const send = way.create(defineConfig({ store: "memory", ...way.options, rules }));
    const answers: Answer[] = [];
    for (const time of [start, end - 1001, end - 1001, end - 1, end, end, end]) {
      vi.setSystemTime(time);
      answers.push(await send());
    }
    const within = answers.map(({ isWithin }) => isWithin);
    expect(within).toEqual([true, true, false, false, true, true, false]);
    const [first, , third] = answers.map(({ headers }) => headers);
    // An isolate that counts alone does not know the quota of the whole client.
    const isKnown = first && way.options?.store !== "upstash";
    if (isKnown) {
      expect(first.get("ratelimit-policy")).toContain(`;w=${window.hours * 3600}`);
      expect(first.get("ratelimit")).toContain(`;t=${window.hours * 3600}`);
    }
    if (first && name !== "the mode mark") expect(third?.get("retry-after")).toBe("2");
  });
});

describe("a denial of the native limiter", () => {
  it("takes no quota of the window, and asks for another attempt after the limiter's period", async () => {
    const [window] = WINDOWS;
    vi.setSystemTime(Date.parse(window.start));
    const { fields, options, create } = WAYS["the native limiter"] as Way;
    const send = create(defineConfig({ ...options, rules: [ruleOf(window, fields)] }));
    native.limit.mockResolvedValueOnce({ success: false });
    const denied = await send();
    expect(denied.isWithin).toBe(false);
    expect(denied.headers?.get("retry-after")).toBe("60");
    const after = [await send(), await send(), await send()];
    expect(after.map(({ isWithin }) => isWithin)).toEqual([true, true, false]);
  });
});

describe("a lease of a calendar window", () => {
  it("ends with the window, and takes nothing from the next one", async () => {
    const [, , day] = WINDOWS;
    const [start, end] = [Date.parse(day.start), Date.parse(day.start) + day.hours * HOUR];
    vi.setSystemTime(start);
    const store = createMemoryStore();
    const { rules, ...config } = defineConfig({ rules: [ruleOf(day, { limit: 1000 })] });
    const [rule] = rules as [(typeof rules)[number]];
    const applied = [{ rule, windows: rule.windows, identity: "someone" }];
    const leasing = new Limiter(
      config,
      withLeases(store, { timeoutMs: 1000, background: () => {} }),
    );
    const other = new Limiter(config, store);
    const leftIn = async (limiter: Limiter) => {
      const decision = await limiter.decide(applied, { checkOnly: true });
      return decision.outcome === "allowed" ? decision.quotas[0]?.remaining : undefined;
    };
    for (let request = 0; request < 100; request++) {
      vi.setSystemTime(end - 60_000 + request * 50);
      await leasing.decide(applied);
    }
    // The isolate has leased more than it has used.
    expect(await leftIn(other)).toBeLessThan(900);
    vi.setSystemTime(end);
    for (let request = 0; request < 5; request++) await leasing.decide(applied);
    expect(await leftIn(leasing)).toBe(995);
    const next = await other.decide(applied);
    expect(next).toMatchObject({ outcome: "allowed", quotas: [{ resetMs: 24 * HOUR }] });
  });
});

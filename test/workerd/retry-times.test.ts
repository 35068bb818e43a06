import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../src/config/index.ts";
import { limitedResponse, undecidedResponse } from "../../src/http/responses.ts";
import type { DecideOptions } from "../../src/limiter/counters.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import { LiveOverrides } from "../../src/overrides/live-overrides.ts";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";

// All fields of a denial that have a time name the same time, whichever of them a client reads.

/** 2023-11-14T22:15:18.25Z: 41.75 seconds before the end of a minute. */
const NOW = 1_700_000_118_250;
const SOMEONE = "d".repeat(22);
const REQUEST = new Request("https://api.example.com/", {
  headers: { origin: "https://page.example" },
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Returns a function that decides a request by these rules. The client is blocked under the rule with this name. */
function deciding(rules: readonly RuleInput[], blocked?: { rule: string; forMs: number }) {
  const config = defineConfig({ rules });
  const limiter = new Limiter(config, withDenialCache(createMemoryStore()));
  const overrides = new LiveOverrides();
  if (blocked) {
    const effect = { kind: "blocked" } as const;
    const fields = { rule: blocked.rule, client: SOMEONE, expiresAt: NOW + blocked.forMs };
    const override = { ...fields, effect, reason: "Abuse", by: "token", setAt: NOW };
    overrides.update({ version: 1, all: [override] });
  }
  const applied = config.rules.map((rule) => ({ rule, windows: rule.windows, identity: SOMEONE }));
  return (options?: DecideOptions) => limiter.decide(overrides.clientsOf(applied), options);
}

type Decide = ReturnType<typeof deciding>;

async function denialBy(decide: Decide, options?: DecideOptions): Promise<Headers> {
  const decision = await decide(options);
  if (decision.outcome !== "limited") throw new Error("The request should be denied.");
  return limitedResponse(REQUEST, decision, "both").headers;
}

/** Returns the items of RateLimit as `name: t`. */
function timesOf(headers: Headers): Record<string, number> {
  const items = (headers.get("ratelimit") ?? "").matchAll(/"([^"]+)";r=\d+;t=(\d+)/g);
  return Object.fromEntries([...items].map(([, name, t]) => [name, Number(t)]));
}

/** Checks the fields, and returns the seconds of Retry-After. */
function expectOneTime(headers: Headers, policies: readonly string[]): number {
  const seconds = Number(headers.get("retry-after"));
  const times = timesOf(headers);
  for (const policy of policies)
    expect({ policy, t: times[policy] }).toEqual({ policy, t: seconds });
  const reset = Number(headers.get("x-ratelimit-reset"));
  const arrivedAt = Math.floor(Date.now() / 1000);
  expect(reset - arrivedAt).toBeGreaterThanOrEqual(seconds);
  expect(reset - arrivedAt).toBeLessThanOrEqual(seconds + 1);
  const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
  for (const name of ["retry-after", "ratelimit", "x-ratelimit-reset"]) {
    expect(exposed).toContain(name);
  }
  return seconds;
}

const MINUTE = { limit: 2, window: "1m" } as const;
const WINDOWS = {
  limits: [
    { limit: 2, window: "1m" },
    { limit: 2, window: "1h" },
  ],
} as const;
const BURST = { limit: 3, window: "1m", capacity: 6, maxReserved: 12 } as const;

describe("every field with a time in a denial", () => {
  it.each<[string, Omit<RuleInput, "name">, policies: string[], seconds: number]>([
    ["the end of the window", MINUTE, ["api"], 42],
    ["the end of the ban", { ...MINUTE, ban: "5m" }, ["api"], 300],
    ["the end of a ban that is shorter than the window", { ...MINUTE, ban: "5s" }, ["api"], 42],
    ["the last of several windows", WINDOWS, ["api/1m", "api/1h"], 2682],
    ["the last of several windows and bans", { ...WINDOWS, ban: "2h" }, ["api/1m", "api/1h"], 7200],
    ["the end of a month", { limit: 2, window: "month" }, ["api"], 1_388_682],
  ])("says %s", async (_, rule, policies, seconds) => {
    const decide = deciding([{ name: "api", ...rule }]);
    expect((await decide({ cost: 2 })).outcome).toBe("allowed");
    // The second denial comes from memory.
    for (const _denial of ["first", "second"]) {
      expect(expectOneTime(await denialBy(decide), policies)).toBe(seconds);
    }
  });

  it("says the end of the ban also if the window has quota left", async () => {
    const decide = deciding([{ name: "api", limit: 9, window: "1h", ban: "5m" }]);
    await decide({ cost: 5 });
    expect(expectOneTime(await denialBy(decide, { cost: 5 }), ["api"])).toBe(2682);
    vi.setSystemTime(NOW + 1000);
    expect(expectOneTime(await denialBy(decide), ["api"])).toBe(299);
  });

  it("says when later windows have repaid the debt", async () => {
    const decide = deciding([{ name: "api", ...BURST }]);
    for (let reserved = 0; reserved < 3; reserved++) await decide({ cost: 5, reserve: true });
    expect(expectOneTime(await denialBy(decide, { cost: 1 }), ["api"])).toBe(42 + 3 * 60);
  });

  it("says the end of an operator's block, or of the window if that is sooner", async () => {
    for (const [forMs, seconds] of [
      [5000, 5],
      [86_400_000, 2682],
    ] as const) {
      const decide = deciding([{ name: "api", ...WINDOWS }], { rule: "api", forMs });
      expect(expectOneTime(await denialBy(decide), ["api/1m", "api/1h"])).toBe(seconds);
    }
  });

  it("includes the random delay of the rule", async () => {
    const decide = deciding([{ name: "api", ...MINUTE, retryJitter: "10m" }]);
    await decide({ cost: 2 });
    for (const [random, seconds] of [
      [0, 42],
      [0.5, 342],
      [0.999, 642],
    ] as const) {
      vi.spyOn(Math, "random").mockReturnValue(random);
      expect(expectOneTime(await denialBy(decide), ["api"])).toBe(seconds);
    }
  });

  it("says the time of the rule that denies, not of one with less quota left", async () => {
    const decide = deciding([
      { name: "tight", limit: 3, window: "10s" },
      { name: "api", limit: 9, window: "1m", cost: 5, ban: "5m" },
    ]);
    await decide();
    const headers = await denialBy(decide);
    expect(expectOneTime(headers, ["api"])).toBe(300);
    expect(headers.get("x-ratelimit-limit")).toBe("9");
    expect(timesOf(headers)).toEqual({ tight: 2, api: 300 });
  });

  it("says the time of another attempt if only a slot is missing", async () => {
    const decide = deciding([{ name: "api", concurrent: 1 }]);
    await decide();
    expect(expectOneTime(await denialBy(decide), [])).toBe(1);
  });
});

it("spreads the returns after an outage over some seconds", () => {
  const seconds = Array.from({ length: 2000 }, () =>
    Number(undecidedResponse(REQUEST).headers.get("retry-after")),
  );
  expect([...new Set(seconds)].sort((a, b) => a - b)).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
});

import { createExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ConfigInput,
  type Denial,
  defineConfig,
  type RuleInput,
} from "../../src/config/index.ts";
import { limitedResponse } from "../../src/http/responses.ts";
import { RateLimitError, WeirService, weir } from "../../src/index.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import { emptyWindows } from "../../src/overrides/override.ts";
import type { LimitOptions } from "../../src/service/options.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";

// A request that no window can ever admit is denied without a time: no retry would help.

/** 2023-11-14T22:15:18Z, 42 seconds before the end of a minute. */
const NOW = 1_700_000_118_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const ADDRESS = { "cf-connecting-ip": "203.0.113.7" };
const COST = { cost: "body:bytes" } as const;
const MINUTE = { ...COST, limit: 1000, window: "1m" } as const;

type Fields = Omit<RuleInput, "name">;

function configOf(rules: readonly RuleInput[], others: Partial<ConfigInput> = {}): ConfigInput {
  return { store: "memory", ...others, rules };
}

/** Returns a function that sends a request of this cost through the rules. */
function sendThrough(rules: readonly RuleInput[], others: Partial<ConfigInput> = {}) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
  const { fetch } = weir(configOf(rules, others));
  return (cost = 1, given: Record<string, string> = {}) => {
    const headers = { ...ADDRESS, "content-length": String(cost), ...given };
    const init = { method: "POST", headers, body: "x".repeat(cost) };
    const request = new Request("https://api.example.com/", init);
    return fetch(request as never, {}, createExecutionContext());
  };
}

async function answerOf(response: Response) {
  const { status, headers } = response;
  const detail = status === 429 ? ((await response.json()) as { detail: string }).detail : "";
  return { status, retryAfter: headers.get("retry-after"), detail };
}

describe("a cost under a limit of 1,000 a minute with a capacity of 2,000", () => {
  const rule = { name: "tokens", ...MINUTE, capacity: 2000 } as const;

  it.each([
    [900, false],
    [1000, false],
    [1001, false],
    [2001, true],
    [5000, true],
  ])("of %i is answered without a time only if it can never pass", async (cost, isNever) => {
    const send = sendThrough([rule]);
    // Only 100 of 2,000 are left.
    await send(1900);
    const { status, retryAfter, detail } = await answerOf(await send(cost));
    expect(status).toBe(429);
    if (!isNever) {
      expect(retryAfter).toMatch(/^[1-9]\d*$/);
      expect(detail).toBe(
        `The quota "tokens" of 1000 per 1m has only 100 left. Try again in ${retryAfter} s.`,
      );
      return;
    }
    expect(retryAfter).toBeNull();
    expect(detail).toBe(
      `The request does not fit: it costs ${cost}, and the quota "tokens" of 1000 per 1m admits at most 2000 at once.`,
    );
  });

  it("still shows the window in the RateLimit fields", async () => {
    const { headers } = await sendThrough([rule], { headers: "both" })(5000);
    expect(Object.fromEntries(headers)).toMatchObject({
      ratelimit: '"tokens";r=2000;t=42',
      "ratelimit-policy": '"tokens";q=1000;w=60',
      "x-ratelimit-reset": String((NOW + 42_000) / 1000),
    });
  });
});

describe("a request that can never pass", () => {
  it.each<[string, Fields, cost: number]>([
    ["a cost above the limit", MINUTE, 1001],
    ["a fixed cost above the limit", { limit: 4, window: "1m", cost: 5 }, 1],
    ["a limit of 0", { limit: 0, window: "1m" }, 1],
    ["a calendar window", { ...COST, limit: 10, window: "month" }, 11],
    ["a cost above every shard's share", { ...MINUTE, shards: 10 }, 101],
    ["a cost above the capacity's share", { ...MINUTE, capacity: 2000, shards: 10 }, 201],
    ["a reservation, which HTTP requests never make", { ...MINUTE, maxReserved: 500 }, 1001],
    [
      "a wait that is too short",
      { ...COST, limit: 5, window: "1s", maxReserved: 50, wait: "2s" },
      16,
    ],
    [
      "a wait for less than the cost",
      { ...COST, limit: 5, window: "1s", maxReserved: 3, wait: "9s" },
      9,
    ],
    [
      "the smaller of two windows",
      {
        ...COST,
        limits: [
          { limit: 10, window: "1m" },
          { limit: 100, window: "1h" },
        ],
      },
      11,
    ],
    ["a ban", { ...MINUTE, ban: "1h" }, 1001],
    ["a random delay", { ...MINUTE, retryJitter: "1m" }, 1001],
    ["a count by status", { limit: 4, window: "1m", cost: 5, count: { status: [401] } }, 1],
  ])("gets no time: %s", async (_, rule, cost) => {
    const send = sendThrough([{ name: "api", ...rule }]);
    for (const attempt of ["first", "second", "third"]) {
      const { status, retryAfter, detail } = await answerOf(await send(cost));
      expect({ attempt, status, retryAfter }).toEqual({ attempt, status: 429, retryAfter: null });
      expect(detail).not.toMatch(/try again| \d+ s\b/i);
      expect(detail).toMatch(/"api/);
    }
  });

  it("gets no time under the limit of its tier", async () => {
    const tiers = { by: "header:x-plan", limits: { small: { limit: 5, window: "1m" } } } as const;
    const send = sendThrough([{ name: "api", ...MINUTE, tiers }]);
    expect(await answerOf(await send(6, { "x-plan": "small" }))).toMatchObject({
      retryAfter: null,
      detail:
        'The request does not fit: it costs 6, and the quota "api" of 5 per 1m admits at most 5 at once.',
    });
    expect((await send(6)).status).toBe(200);
  });

  it("gets no time if another rule would admit it later, from the store and from memory", async () => {
    const once: RuleInput = { name: "once", limit: 1, window: "1h" };
    for (const rules of [
      [once, { name: "tokens", ...MINUTE }],
      [{ name: "tokens", ...MINUTE }, once],
    ]) {
      const send = sendThrough(rules);
      expect((await send()).status).toBe(200);
      for (const cost of [1001, 1001, 1]) {
        const { status, retryAfter, detail } = await answerOf(await send(cost));
        const isNever = cost > 1000;
        expect({ cost, status, isNever: retryAfter === null }).toEqual({
          cost,
          status: 429,
          isNever,
        });
        expect(detail.includes("Try again")).toBe(!isNever);
      }
    }
  });

  it("gets no time if memory denies it by a rule that would admit it later", async () => {
    // The key of the second rule differs in each request, so memory knows only the first rule.
    const rules: RuleInput[] = [
      { name: "once", limit: 1, window: "1h" },
      { name: "tokens", ...MINUTE, key: "header:x-id" },
    ];
    const send = sendThrough(rules);
    await send(1, { "x-id": "a" });
    await send(1, { "x-id": "a" });
    expect(await answerOf(await send(1001, { "x-id": "b" }))).toMatchObject({
      retryAfter: null,
      detail: expect.stringContaining('the quota "tokens" of 1000 per 1m admits at most 1000'),
    });
  });

  it("gets no time during a ban, whose end would not help", async () => {
    const send = sendThrough([{ name: "api", ...MINUTE, limit: 5, ban: "5m" }]);
    await send(5);
    expect((await send(1)).headers.get("retry-after")).toBe("300");
    expect((await send(6)).headers.get("retry-after")).toBeNull();
    expect((await send(1)).headers.get("retry-after")).toBe("300");
  });

  it("has a cost that only the smaller of two shards refuses, and may pass later", async () => {
    const random = vi.spyOn(Math, "random").mockReturnValue(0.99);
    const send = sendThrough([{ name: "api", ...COST, limit: 3, window: "1m", shards: 2 }]);
    expect((await send(2)).headers.get("retry-after")).toBe("42");
    random.mockReturnValue(0);
    expect((await send(2)).status).toBe(200);
  });
});

describe("an answer of one's own to a request that can never pass", () => {
  const limited: RuleInput = { name: "api", ...MINUTE };

  it("has no Retry-After if the rule's response is fixed", async () => {
    const response = { status: 413, body: "Too much." } as const;
    const answer = await sendThrough([{ ...limited, response }])(1001);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([413, null]);
    expect(await answer.text()).toBe("Too much.");
  });

  it("learns the reason and no time if a function creates it", async () => {
    const denials: Denial[] = [];
    const page = (denial: Denial) => {
      denials.push(denial);
      return new Response("no", { status: 429, headers: { "Retry-After": "5" } });
    };
    const rules: RuleInput[] = [{ ...limited, response: "custom:page" }];
    const send = sendThrough(rules, { custom: { responses: { page } } });
    expect((await send(1001)).headers.get("retry-after")).toBeNull();
    await send(1000);
    expect((await send(1)).headers.get("retry-after")).toBe("42");
    expect(denials.map(({ reason }) => reason)).toEqual(["exceeds-limit", undefined]);
    expect(denials[0]).not.toHaveProperty("retryAfterMs");
    expect(denials[0]).not.toHaveProperty("retryAfterSeconds");
    expect(denials[0]?.violated[0]).not.toHaveProperty("retryAfterMs");
    expect(denials[1]).toMatchObject({ retryAfterMs: 42_000, retryAfterSeconds: 42 });
  });
});

describe("the log of a request that can never pass", () => {
  it.each(["enforce", "shadow"] as const)(
    "has the reason and no time, in the mode %s",
    async (mode) => {
      const lines: Record<string, unknown>[] = [];
      // The denials of the other tests have used up this second's lines.
      vi.setSystemTime(NOW + 60_000);
      vi.spyOn(console, "log").mockImplementation((line) => void lines.push(JSON.parse(line)));
      const send = sendThrough([{ name: "api", ...MINUTE, mode }]);
      await send(1001);
      await vi.waitFor(() => expect(lines.filter(({ weir }) => weir === "denied")).toHaveLength(1));
      const [line] = lines.filter(({ weir }) => weir === "denied");
      expect(line).toMatchObject({ mode, rule: "api", cost: 1001, reason: "exceeds-limit" });
      expect(line).not.toHaveProperty("retryAfterMs");
    },
  );
});

describe("a program's call that can never pass", () => {
  function serviceOf(rule: Fields, others: Partial<ConfigInput> = {}) {
    const config = configOf([{ name: "jobs", ...rule }], others);
    class Limits extends WeirService {
      readonly config = config;
    }
    return new Limits(createExecutionContext(), {});
  }
  const CAPACITY = { limit: 1000, window: "1m", capacity: 2000 } as const;

  it.each<[string, Fields, LimitOptions, isNever: boolean]>([
    ["the limit", CAPACITY, { cost: 1000 }, false],
    ["more than the limit", CAPACITY, { cost: 1001 }, false],
    ["more than the capacity", CAPACITY, { cost: 2001 }, true],
    ["a reservation", { ...CAPACITY, maxReserved: 500 }, { cost: 2500, reserve: true }, false],
    [
      "more than can be reserved",
      { ...CAPACITY, maxReserved: 500 },
      { cost: 2501, reserve: true },
      true,
    ],
    ["no reservation", { ...CAPACITY, maxReserved: 500 }, { cost: 2001 }, true],
    ["more than a shard", { limit: 1000, window: "1m", shards: 10 }, { cost: 101 }, true],
    ["a limit of 0", { limit: 0, window: "1m" }, {}, true],
    ["no wait", { limit: 5, window: "1s", maxReserved: 5, wait: "5s" }, { cost: 6 }, true],
  ])("has the reason and no time if it costs %s", async (_, rule, options, isNever) => {
    const service = serviceOf(rule);
    // After this call, no more quota is left than what is missing in the next one.
    if (!isNever) await service.limit("jobs", { cost: 1999 });
    for (const method of ["check", "limit", "limit"] as const) {
      const result = await service[method]("jobs", options);
      const { ok, reason, retryAfterMs, quotas } = result;
      expect({ ok, reason }).toEqual({ ok: false, reason: isNever ? "exceeds-limit" : undefined });
      expect(retryAfterMs === undefined).toBe(isNever);
      expect("retryAfterMs" in result).toBe(!isNever);
      expect(quotas?.some((quota) => quota.violated && !("retryAfterMs" in quota))).toBe(isNever);
    }
  });

  it("throws an error without a time, which keeps its reason over a service binding", async () => {
    const service = serviceOf({ limit: 5, window: "1m" });
    const error = await service.limit("jobs", { cost: 6, throws: true }).catch((each) => each);
    for (const limited of [
      error,
      RateLimitError.from(new Error(`RateLimitError: ${error.message}`)),
    ]) {
      expect(limited).toMatchObject({ rule: "jobs", reason: "exceeds-limit" });
      expect(limited.retryAfterMs).toBeUndefined();
    }
    await service.limit("jobs", { cost: 5 });
    const later = await service.limit("jobs", { throws: true }).catch((each) => each);
    expect(RateLimitError.from(new Error(later.message))).toMatchObject({ retryAfterMs: 42_000 });
    expect(RateLimitError.from(later)?.reason).toBeUndefined();
  });

  it("is marked without a time under a rule with the mode mark", async () => {
    const result = await serviceOf({ limit: 5, window: "1m", mode: "mark" }).limit("jobs", {
      cost: 6,
    });
    expect(result).toMatchObject({ ok: true, over: ["jobs"], quotas: [{ violated: true }] });
    expect(result.quotas?.[0]).not.toHaveProperty("retryAfterMs");
  });
});

describe("a limit that an operator has set to 0", () => {
  it.each<[string, Fields, policy: string]>([
    ["requests", { limit: 9, window: "1m" }, "api"],
    ["open requests", { concurrent: 2 }, "api"],
    ["both", { limit: 9, window: "1m", concurrent: 2 }, "api/1m"],
  ])("denies %s without a time, because nobody knows when it changes", async (_, rule, policy) => {
    const config = defineConfig({ rules: [{ name: "api", ...rule }] });
    const limiter = new Limiter(config, createMemoryStore());
    const applied = config.rules.map((each) => ({
      rule: each,
      windows: emptyWindows(each.windows),
      identity: "someone",
    }));
    const decision = await limiter.decide(applied);
    if (decision.outcome !== "limited") throw new Error("The request should be denied.");
    expect(decision).not.toHaveProperty("retryAfterMs");
    const request = new Request("https://api.example.com/");
    const answer = limitedResponse(request, decision, "draft-11");
    expect(answer.headers.get("retry-after")).toBeNull();
    expect(await answer.json()).toMatchObject({
      detail: expect.stringMatching(/ admits no request|allows no open requests/),
      "violated-policies": expect.arrayContaining([policy]),
    });
  });
});

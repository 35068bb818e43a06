import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../src/config/index.ts";
import { type LimitOptions, RateLimitError, WeirService, weir } from "../../src/index.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import { Limiter } from "../../src/limiter/limiter.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function serviceOf(
  rules: ConfigInput["rules"],
  options: Omit<ConfigInput, "rules"> = {},
  env = {},
) {
  const config = defineConfig({ store: "memory", ...options, rules });
  class Limits extends WeirService {
    readonly config = config;
  }
  return new Limits(createExecutionContext(), env);
}

const FIVE = { name: "five", limit: 5, window: "1h" } as const;
const HOURLY = { limit: 30, window: "1h" } as const;
const RESERVE = { reserve: 2, settle: "header:x-cost" } as const;

describe("limit", () => {
  it("takes quota until none is left, and then returns the time until there is quota again", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    const service = serviceOf([{ ...FIVE, limit: 1, window: "1m" }]);
    expect(await service.limit("five")).toMatchObject({
      ok: true,
      quotas: [{ policy: "five", limit: 1, remaining: 0, resetMs: 60_000 }],
    });
    expect(await service.limit("five")).toMatchObject({
      ok: false,
      retryAfterMs: 60_000,
      quotas: [{ policy: "five", remaining: 0, violated: true }],
    });
  });

  it("counts each key separately, and all calls without a key together", async () => {
    const service = serviceOf([{ ...FIVE, key: "header:x-api-key", limit: 1 }]);
    const oks = [];
    for (const key of ["a", "b", "a", undefined, undefined]) {
      oks.push((await service.limit("five", key === undefined ? {} : { key })).ok);
    }
    expect(oks).toEqual([true, true, false, true, false]);
  });

  it("grants a cost of 1 after it has denied a cost of 5", async () => {
    const service = serviceOf([FIVE]);
    await service.limit("five");
    expect(await service.limit("five", { cost: 5 })).toMatchObject({ ok: false });
    expect(await service.limit("five", { cost: 1 })).toMatchObject({ ok: true });
  });

  it("takes the rule's cost if the call has none", async () => {
    const service = serviceOf([{ ...FIVE, cost: 2 }]);
    expect(await service.limit("five")).toMatchObject({ quotas: [{ remaining: 3 }] });
  });

  it.each<[object, number]>([
    [{ cost: { from: "body:bytes", max: 4 } }, 1],
    [{ cost: { from: "body:bytes", max: 4, default: 3 } }, 3],
    [{ cost: { reserve: 2, settle: "header:x-cost", default: 3 } }, 2],
    [{ cost: { settle: "header:x-cost", default: 3 } }, 3],
  ])(
    "charges, if the call has no cost, the number of a computed cost: %j costs %d",
    async (fields, cost) => {
      const service = serviceOf([{ ...FIVE, ...fields }]);
      expect(await service.check("five")).toMatchObject({ quotas: [{ remaining: 5 }] });
      expect(await service.limit("five")).toMatchObject({ quotas: [{ remaining: 5 - cost }] });
    },
  );

  it("calls no function for the cost of a call", async () => {
    const depth = vi.fn(() => 4);
    const service = serviceOf([{ ...FIVE, cost: "custom:depth" }], {
      custom: { costs: { depth } },
    });
    expect(await service.limit("five")).toMatchObject({ quotas: [{ remaining: 4 }] });
    expect(await service.limit("five", { cost: 3 })).toMatchObject({ quotas: [{ remaining: 1 }] });
    expect(depth).not.toHaveBeenCalled();
  });

  it("charges a rule at once, even if a gateway charges the rule by the response", async () => {
    const service = serviceOf([
      { ...FIVE, name: "failures", count: { status: [401] } },
      { ...FIVE, name: "priced", cost: "header:x-cost" },
    ]);
    for (const rule of ["failures", "priced"]) {
      await service.limit(rule);
      expect(await service.getValue(rule)).toMatchObject([{ remaining: 4 }]);
    }
  });

  it("gives quota back with a negative cost, and never more than the limit", async () => {
    const service = serviceOf([FIVE]);
    await service.limit("five", { cost: 4 });
    expect(await service.limit("five", { cost: -2 })).toMatchObject({
      ok: true,
      quotas: [{ remaining: 3 }],
    });
    expect(await service.limit("five", { cost: -100 })).toMatchObject({
      quotas: [{ remaining: 5 }],
    });
  });

  it("reserves quota of later windows, and returns the time until they have granted it", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    const service = serviceOf([{ ...FIVE, window: "1m", maxReserved: 5 }]);
    expect(await service.limit("five", { cost: 7 })).toMatchObject({ ok: false });
    expect(await service.limit("five", { cost: 7, reserve: true })).toMatchObject({
      ok: true,
      retryAfterMs: 60_000,
      quotas: [{ remaining: 0 }],
    });
    expect(await service.limit("five", { cost: 4, reserve: true })).toMatchObject({ ok: false });
  });

  describe.each([
    ["a window", { window: "1m", maxReserved: 12 }],
    ["several windows", { limits: [{ limit: 5, window: "1m", maxReserved: 12 }, HOURLY] }],
    ["a capacity", { window: "1m", capacity: 6, maxReserved: 12 }],
    ["shards", { limit: 10, window: "1m", maxReserved: 12, shards: 2 }],
    ["a month", { window: "month", maxReserved: 12 }],
    ["the mode mark", { window: "1m", maxReserved: 12, mode: "mark" }],
    ["a cost with a reserve", { window: "1m", maxReserved: 12, cost: RESERVE }],
    ["a cost of the response", { window: "1m", maxReserved: 12, cost: "header:x-cost" }],
  ] as const)("a check that may reserve quota of later windows, with %s", (_, fields) => {
    it.each([1, 5, 7, 11, 17, 18, 40])(
      "returns what limit returns for a cost of %i",
      async (cost) => {
        vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
        vi.spyOn(Math, "random").mockReturnValue(0);
        const limit = "limits" in fields ? {} : { limit: 5 };
        const service = serviceOf([{ name: "five", ...limit, ...fields } as RuleInput], {
          denialLog: 0,
        });
        for (let calls = 0; calls < 3; calls++) {
          const checked = await service.check("five", { cost, reserve: true });
          const limited = await service.limit("five", { cost, reserve: true });
          expect([checked.ok, checked.retryAfterMs]).toEqual([limited.ok, limited.retryAfterMs]);
          expect(checked.quotas?.map((each) => each.reservationDelayMs)).toEqual(
            limited.quotas?.map((each) => each.reservationDelayMs),
          );
        }
      },
    );
  });

  it("throws an error with the rule and the time to wait if throws is set", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    const service = serviceOf([{ ...FIVE, limit: 1, window: "1m" }]);
    await service.limit("five");
    const error = await service.limit("five", { throws: true }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ rule: "five", retryAfterMs: 60_000 });
  });

  it("applies the limits of the client's tier, or the rule's own limits", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 50, window: "1h" } } };
    const service = serviceOf([{ ...FIVE, tiers }]);
    const limitOf = async (tier?: string) =>
      (await service.getValue("five", tier === undefined ? {} : { tier }))[0]?.limit;
    expect(await limitOf()).toBe(5);
    expect(await limitOf("pro")).toBe(50);
    expect(await limitOf("free")).toBe(5);
  });

  it("never denies by a rule in shadow mode, and returns no quotas for this rule", async () => {
    const log = vi.spyOn(console, "log").mockReturnValue();
    const service = serviceOf([{ ...FIVE, limit: 0, mode: "shadow" }]);
    expect(await service.limit("five", { throws: true })).toEqual({ ok: true, quotas: [] });
    const lines = log.mock.calls.map(([line]) => JSON.parse(line));
    expect(lines).toMatchObject([{ weir: "denied", mode: "shadow", rule: "five", policy: "five" }]);
  });
});

describe("check", () => {
  it("returns whether enough quota is left, and takes none", async () => {
    const service = serviceOf([FIVE]);
    for (let calls = 0; calls < 3; calls++) {
      expect(await service.check("five", { cost: 5 })).toMatchObject({ ok: true });
    }
    expect(await service.check("five", { cost: 6 })).toMatchObject({ ok: false });
    await expect(service.check("five", { cost: 6, throws: true })).rejects.toThrow(RateLimitError);
    expect(await service.getValue("five")).toMatchObject([{ remaining: 5 }]);
  });
});

describe("getValue", () => {
  it("returns the quota of every window, even for a client over the limit", async () => {
    const limits = [
      { limit: 2, window: "1m" },
      { limit: 5, window: "1h" },
    ];
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    vi.spyOn(console, "log").mockReturnValue();
    const service = serviceOf([{ name: "search", limits, mode: "shadow" }]);
    await service.limit("search", { cost: 2 });
    await service.limit("search");
    expect(await service.getValue("search")).toMatchObject([
      { policy: "search/1m", limit: 2, remaining: 0, resetMs: 60_000 },
      { policy: "search/1h", limit: 5, remaining: 3 },
    ]);
  });
});

describe("reset", () => {
  it("resets one client, and no other", async () => {
    const service = serviceOf([{ ...FIVE, key: "query:user", limit: 1 }]);
    for (const key of ["ann", "bob"]) await service.limit("five", { key });
    await service.reset("five", { key: "ann" });
    expect(await service.limit("five", { key: "ann" })).toMatchObject({ ok: true });
    expect(await service.limit("five", { key: "bob" })).toMatchObject({ ok: false });
  });

  it("ends a ban", async () => {
    const service = serviceOf([{ ...FIVE, limit: 1, ban: "1d" }]);
    await service.limit("five");
    expect(await service.limit("five")).toMatchObject({ ok: false });
    await service.reset("five");
    expect(await service.limit("five")).toMatchObject({ ok: true });
  });

  it("resets every tier", async () => {
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 50, window: "1d" } } };
    const service = serviceOf([{ ...FIVE, tiers }]);
    await service.limit("five", { tier: "pro", cost: 50 });
    await service.reset("five");
    expect(await service.getValue("five", { tier: "pro" })).toMatchObject([{ remaining: 50 }]);
  });
});

describe("a reset of a rule with tiers", () => {
  it("resets both counters if only one of two windows of the same length rolls over", async () => {
    const tiers = {
      by: "header:x-plan",
      limits: { pro: { limit: 50, window: "1h", capacity: 80 }, team: { limit: 9, window: "1h" } },
    };
    const service = serviceOf([{ ...FIVE, tiers }]);
    await service.limit("five", { cost: 5 });
    await service.limit("five", { tier: "pro", cost: 70 });
    await service.reset("five");
    expect(await service.getValue("five")).toMatchObject([{ remaining: 5 }]);
    expect(await service.getValue("five", { tier: "pro" })).toMatchObject([{ remaining: 80 }]);
  });
});

describe("a call with an unknown rule or an invalid cost", () => {
  it.each<[string, LimitOptions | undefined, string]>([
    ["fife", {}, 'There is no rule "fife". The rules are: five, ten.'],
    [
      "five",
      { cost: 1.5 },
      "The cost must be a whole number from -999999999999999 to 999999999999999",
    ],
    ["five", { cost: Number.NaN }, "not NaN."],
    ["five", { cost: Infinity }, "not Infinity."],
    ["five", { cost: 1e15 }, "not 1000000000000000."],
    ["five", { cost: "2" as never }, 'not the text "2".'],
    ["five", { cost: "sk_live_1" as never }, "not a text."],
    ["five", { cost: {} as never }, "not a value of type object."],
  ])("throws a RangeError: %s, %j", async (rule, options, message) => {
    const service = serviceOf([FIVE, { ...FIVE, name: "ten" }]);
    await expect(service.limit(rule, options)).rejects.toThrow(message);
    await expect(service.limit(rule, options)).rejects.toThrow(RangeError);
  });

  it("throws a RangeError if it checks for a cost below 0", async () => {
    await expect(serviceOf([FIVE]).check("five", { cost: -1 })).rejects.toThrow(RangeError);
  });
});

describe("options that are not a plain object of the known options", () => {
  it.each<[unknown, string]>([
    ...[5, "ann", ["ann"], null, true, new Map([["key", "ann"]]), new Date(0)].map(
      (options): [unknown, string] => [
        options,
        "The options must be an object with any of key, tier",
      ],
    ),
    [{ kye: "ann" }, 'There is no option "kye". The options are: key, tier'],
    [{ sk_live_4eC39HqLyjWD: true }, "There is no option of this name. The options are: key"],
    [{ key: undefined }, "The option key is undefined. Leave it out to use the counter"],
    [JSON.parse('{"__proto__": {"key": "ann"}}'), 'There is no option "__proto__".'],
    [{ tier: 5 }, "The option tier must be a string, not a number."],
  ])("throw a TypeError, and charge no shared counter: %j", async (options, message) => {
    const service = serviceOf([FIVE]);
    for (const method of ["limit", "check", "getValue", "reset"] as const) {
      const call = service[method]("five", options as never);
      await expect(call).rejects.toThrow(TypeError);
      await expect(call).rejects.toThrow(message);
    }
    expect(await service.getValue("five")).toMatchObject([{ remaining: 5 }]);
  });
});

describe("a client whose key is the second alternative", () => {
  const rules = [{ ...FIVE, key: "header:x-api-key | ip" }];

  it("is read and reset under the name of that alternative", async () => {
    const service = serviceOf(rules);
    const key = { ip: "203.0.113.7" };
    await service.limit("five", { key, cost: 4 });
    expect(await service.getValue("five", { key })).toMatchObject([{ remaining: 1 }]);
    expect(
      await service.getValue("five", { key: { "header:x-api-key": "203.0.113.7" } }),
    ).toMatchObject([{ remaining: 5 }]);
    await service.reset("five", { key });
    expect(await service.getValue("five", { key })).toMatchObject([{ remaining: 5 }]);
  });

  it("cannot be given as a text alone", async () => {
    const call = serviceOf(rules).getValue("five", { key: "203.0.113.7" });
    await expect(call).rejects.toThrow(
      'For the rule "five", the key must be { "header:x-api-key": "…" } or { ip: "…" }.',
    );
  });
});

describe("a service whose bindings cannot work as configured", () => {
  const nativeLimiter = { binding: "NATIVE" };

  it.each<[string, Omit<ConfigInput, "rules">, Record<string, unknown>]>([
    ["UPSTASH_REDIS_REST_URL is not set, but", {}, { UPSTASH_REDIS_REST_TOKEN: "token" }],
    ["no rate limiter is bound as NATIVE", { nativeLimiter }, {}],
  ])("logs the fault once: %s", async (fault, options, bindings) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const service = serviceOf(
      [FIVE],
      { store: undefined, ...options },
      { COUNTERS: env.COUNTERS, ...bindings },
    );
    expect(await service.limit("five")).toMatchObject({ ok: true });
    expect(await service.limit("five")).toMatchObject({ ok: true });
    const lines = log.mock.calls.map(([line]) => String(line));
    expect(lines).toEqual([expect.stringContaining(fault)]);
    expect(lines[0]).toContain("misconfigured");
  });
});

describe("a service whose store cannot decide", () => {
  const rules = (onError: "open" | "closed") => [{ ...FIVE, onError }];
  const broken = { store: "upstash" } as const;

  it.each(["open", "closed"] as const)(
    "returns a result by the rule's onError: %s",
    async (onError) => {
      vi.spyOn(console, "error").mockReturnValue();
      const service = serviceOf(rules(onError), broken);
      const answer = { ok: onError === "open", undecided: "misconfigured" };
      expect(await service.limit("five")).toEqual(answer);
      expect(await service.check("five")).toEqual(answer);
      expect(await service.limit("five", { cost: -1 })).toEqual({ ...answer, ok: true });
    },
  );

  it("throws an error other than RateLimitError for a closed rule if throws is set", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const call = serviceOf(rules("closed"), broken).limit("five", { throws: true });
    const error = await call.catch((thrown) => thrown);
    expect(error.message).toBe('The rule "five" could not be decided: misconfigured.');
    expect(RateLimitError.from(error)).toBeUndefined();
    expect(await serviceOf(rules("open"), broken).limit("five", { throws: true })).toMatchObject({
      ok: true,
    });
  });

  it("answers ok for a rule in shadow mode, even if it is closed", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const service = serviceOf([{ ...FIVE, mode: "shadow", onError: "closed" }], broken);
    const answer = { ok: true, undecided: "misconfigured" };
    expect(await service.limit("five", { throws: true })).toEqual(answer);
    expect(await service.limit("five", { cost: -1 })).toEqual(answer);
  });

  it("answers ok for a rule with the mode mark, and says that it could not decide", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const service = serviceOf([{ ...FIVE, mode: "mark" }], broken);
    const answer = { ok: true, undecided: "misconfigured" };
    expect(await service.limit("five", { throws: true })).toEqual(answer);
    expect(await service.check("five")).toEqual(answer);
  });

  it("throws if it cannot read or reset the counters", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const service = serviceOf(rules("open"), broken);
    await expect(service.getValue("five")).rejects.toThrow("could not be read: misconfigured");
    await expect(service.reset("five")).rejects.toThrow("UPSTASH_REDIS_REST_URL is not set");
  });
});

describe("a service and a gateway with the same rules", () => {
  it.each([
    ["without a secret", {}],
    ["with a secret", { WEIR_KEY_SECRET: "0123456789abcdef0123456789abcdef" }],
  ])("count the same client in the same counter, %s", async (_, secret) => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const { env: bindings } = await import("cloudflare:workers");
    const env = { ...bindings, ...secret };
    const rules = [
      { ...FIVE, name: "shared", key: "header:x-api-key | ip" },
      { ...FIVE, name: "client" },
    ];
    const options = { store: "durable-object", prefix: crypto.randomUUID() } as const;
    const headers = { "x-api-key": "abc", "cf-connecting-ip": "2001:db8::1" };
    await weir(defineConfig({ ...options, rules })).fetch(
      new Request("https://x.example/", { headers }) as never,
      env as never,
      createExecutionContext(),
    );
    const service = serviceOf(rules, options, env);
    expect(await service.getValue("shared", { key: { "header:x-api-key": "abc" } })).toMatchObject([
      { remaining: 4 },
    ]);
    // The request came from another address, but both addresses are in the same network.
    expect(await service.getValue("client", { key: "2001:db8::2" })).toMatchObject([
      { remaining: 4 },
    ]);
  });
});

describe("the var WEIR_PREFIX", () => {
  const { rules, ...options } = {
    rules: [{ ...FIVE, name: "shared" }],
    store: "durable-object",
  } as const;

  it("separates the counters of two environments, and is the same for gateway and service", async () => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const { env } = await import("cloudflare:workers");
    const staging = { ...env, WEIR_PREFIX: crypto.randomUUID() };
    const production = { ...env, WEIR_PREFIX: crypto.randomUUID() };
    await weir(defineConfig({ ...options, rules })).fetch(
      new Request("https://x.example/", { headers: { "cf-connecting-ip": "192.0.2.1" } }) as never,
      staging as never,
      createExecutionContext(),
    );
    const client = { key: "192.0.2.1" };
    const left = async (bindings: object, prefix?: string) =>
      await serviceOf(rules, { ...options, ...(prefix && { prefix }) }, bindings).getValue(
        "shared",
        client,
      );
    expect(await left(staging)).toMatchObject([{ remaining: 4 }]);
    expect(await left(production)).toMatchObject([{ remaining: 5 }]);
    // A configured prefix with the same text names the same counters.
    expect(await left(env, staging.WEIR_PREFIX)).toMatchObject([{ remaining: 4 }]);
  });

  it("leaves requests undecided if it is not a valid prefix", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const { env } = await import("cloudflare:workers");
    const service = serviceOf(rules, options, { ...env, WEIR_PREFIX: "a:b" });
    expect(await service.limit("shared", { key: "192.0.2.1" })).toMatchObject({
      ok: true,
      undecided: "misconfigured",
    });
    expect(JSON.stringify(log.mock.calls)).toContain("WEIR_PREFIX is not a text");
  });
});

describe("a service and a gateway with one configuration in one isolate", () => {
  it("count in the same memory, and log a fault of the store once", async () => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const log = vi.spyOn(console, "error").mockReturnValue();
    const nativeLimiter = { binding: "NATIVE" };
    const config = defineConfig({ store: "memory", nativeLimiter, rules: [FIVE] });
    class Limits extends WeirService<typeof config> {
      readonly config = config;
    }
    await weir(config).fetch(
      new Request("https://x.example/", { headers: { "cf-connecting-ip": "192.0.2.1" } }) as never,
      {},
      createExecutionContext(),
    );
    const service = new Limits(createExecutionContext(), {});
    expect(await service.getValue("five", { key: "192.0.2.1" })).toMatchObject([{ remaining: 4 }]);
    expect(log.mock.calls).toHaveLength(1);
  });
});

describe("the limiter of a configuration", () => {
  const config = defineConfig({ rules: [FIVE] });
  class Limits extends WeirService<typeof config> {
    readonly config = config;
  }
  const limit = (env: object) =>
    new Limits(createExecutionContext(), env as never).limit("five", { key: "192.0.2.7" });

  it("is created again for other bindings, and shared for the same bindings in another object", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    expect(await limit({})).toMatchObject({ undecided: "misconfigured" });
    const { COUNTERS } = env;
    expect(await limit({ COUNTERS })).toMatchObject({ ok: true, quotas: [{ remaining: 4 }] });
    expect(await limit({ COUNTERS })).toMatchObject({ ok: true, quotas: [{ remaining: 3 }] });
    expect(await limit({})).toMatchObject({ undecided: "misconfigured" });
    const lines = log.mock.calls.map(([line]) => JSON.parse(line).weir);
    expect(lines.filter((event) => event === "misconfigured")).toHaveLength(1);
  });

  it("hashes with the secret of its own bindings", async () => {
    const { COUNTERS } = env;
    await limit({ COUNTERS });
    const secret = { COUNTERS, WEIR_KEY_SECRET: "0123456789abcdef0123456789abcdef" };
    expect(await limit(secret)).toMatchObject({ quotas: [{ remaining: 4 }] });
  });
});

describe("RateLimitError.from", () => {
  it.each([
    ["the error itself", new RateLimitError("five", 1500)],
    ["its copy after RPC", Object.assign(new Error(new RateLimitError("five", 1500).message))],
    [
      "its copy after RPC with an older compatibility date",
      new Error(`${new RateLimitError("five", 1499.2)}`),
    ],
  ])("recognizes %s", (_, error) => {
    expect(RateLimitError.from(error)).toMatchObject({ rule: "five", retryAfterMs: 1500 });
  });

  it.each([new Error("other"), "text", undefined])("returns undefined for %o", (error) => {
    expect(RateLimitError.from(error)).toBeUndefined();
  });
});

describe("RateLimitError.from, for a time that is written with an exponent", () => {
  it.each([3e24, 1e21, 1.5e300, 2 ** 70, 999_999_999_999_999])("reads %d ms", (retryAfterMs) => {
    const message = new RateLimitError("five", retryAfterMs).message;
    expect(RateLimitError.from(new Error(message))).toMatchObject({ rule: "five", retryAfterMs });
  });
});

describe("the leases of a rule", () => {
  const minute = { name: "api", key: "ip", limit: 1000, window: "1m" } as const;
  const RULES: [string, Partial<RuleInput>, isLeased: boolean][] = [
    ["no other field", {}, true],
    ["a cost", { cost: 3 }, true],
    ["a cost of the request", { cost: "body:bytes" }, true],
    ["start: spread", { start: "spread" }, true],
    ["mode: shadow", { mode: "shadow" }, true],
    ["mode: mark", { mode: "mark" }, true],
    ["lease: false", { lease: false }, false],
    ["ban", { ban: "1m" }, false],
    ["capacity", { capacity: 2000 }, false],
    ["maxReserved", { maxReserved: 10 }, false],
    ["shards", { shards: 2 }, false],
    ["count", { count: { status: [401] } }, false],
    ["count with a reserve", { count: { status: [401], reserve: true } }, false],
    ["a cost of the response", { cost: "header:x-cost" }, false],
    ["a cost of the response with bounds", { cost: { settle: "header:x-cost", max: 9 } }, false],
    ["a cost that is reserved", { cost: RESERVE }, false],
  ];
  const IP = { key: { ip: "203.0.113.7" } } as const;
  const CALLS: [string, (service: WeirService) => unknown][] = [
    ["limit", (service) => service.limit("api", { ...IP, cost: 1 })],
    ["limit, which may reserve", (service) => service.limit("api", { ...IP, reserve: true })],
    ["check", (service) => service.check("api", { ...IP, reserve: true })],
    ["a refund", (service) => service.limit("api", { ...IP, cost: -1 })],
    ["getValue", (service) => service.getValue("api", IP)],
  ];

  it.each(RULES)(
    "are the same for the gateway and for programs: %s",
    async (_, fields, isLeased) => {
      const config = defineConfig({
        store: "memory",
        rules: [{ ...minute, ...fields } as RuleInput],
      });
      class Limits extends WeirService {
        override readonly config = config;
      }
      const service = new Limits(createExecutionContext(), {});
      const decide = vi.spyOn(Limiter.prototype, "decide");
      const refund = vi.spyOn(Limiter.prototype, "refund");
      const { fetch } = weir(config);
      const request = new Request("https://api.example.com/") as never;
      await fetch(request, {}, createExecutionContext(), async () => new Response("ok"));
      for (const [, call] of CALLS) await call(service);
      const applied = [
        ...decide.mock.calls.flatMap(([appliedRules]) => appliedRules),
        ...refund.mock.calls.map(([appliedRule]) => appliedRule),
      ];
      expect(applied).toHaveLength(1 + CALLS.length);
      const counters = applied.flatMap((each) => ruleCountersOf(each, "weir"));
      const leased = counters.map(({ counter }) => counter.leasable ?? false);
      expect(leased).toEqual(applied.map(() => isLeased));
    },
  );
});

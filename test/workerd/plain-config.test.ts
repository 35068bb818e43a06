import { createExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  ConfigError,
  type ConfigInput,
  defineConfig,
  type RuleInput,
} from "../../src/config/index.ts";
import { rateLimit, WeirService, weir } from "../../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const INPUT: ConfigInput<"api"> = {
  store: "memory",
  rules: [{ name: "api", limit: 2, window: "1h" }],
};
const FAULTY = { ...INPUT, rules: [{ name: "api", limit: -1, window: "1x" }] };

const request = () => new Request("https://api.example.com/") as never;
const next = () => new Response();

describe("a plain object in place of a configuration of defineConfig", () => {
  it("is accepted by weir, rateLimit and WeirService, which share its counters", async () => {
    const input = { ...INPUT };
    class Limits extends WeirService<typeof input> {
      readonly config = input;
    }
    const app = new Hono().use(rateLimit(input));
    app.get("/", (c) => c.text("ok"));
    const { fetch } = weir(input);
    const headers = { "cf-connecting-ip": "203.0.113.7" };
    const service = new Limits(createExecutionContext(), {});
    expect((await app.request("/", { headers })).headers.get("ratelimit")).toContain("r=1");
    const sent = new Request("https://api.example.com/", { headers }) as never;
    const response = await fetch(sent, {}, createExecutionContext(), next);
    expect(response.headers.get("ratelimit")).toContain("r=0");
    expect(await service.limit("api", { key: "203.0.113.7" })).toMatchObject({ ok: false });
  });

  it.each([
    ["has faults", FAULTY, "Weir's configuration has 2 faults:"],
    ["is missing", undefined, "Weir's configuration has 1 fault"],
  ])("is refused by weir and rateLimit when they are called, if it %s", (_, input, message) => {
    expect(() => weir(input as never)).toThrow(ConfigError);
    expect(() => rateLimit(input as never)).toThrow(ConfigError);
    expect(() => weir(input as never)).toThrow(message);
  });

  it("makes every call to a service throw the same error if the object has faults", async () => {
    class Limits extends WeirService {
      // Each call to a service creates an instance, and so a new object.
      readonly config = { ...FAULTY } as ConfigInput;
    }
    for (let call = 0; call < 3; call++) {
      const service = new Limits(createExecutionContext(), {});
      for (const task of [service.limit("api"), service.reset("api")]) {
        const error = await task.catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(ConfigError);
        expect((error as Error).message).toContain("rules[0].limit: got -1");
      }
    }
  });

  it("is read once by a service if all calls use the same object", async () => {
    const readRules = vi.fn(() => INPUT.rules);
    const input = Object.defineProperty({ store: "memory" }, "rules", {
      get: readRules,
      enumerable: true,
    });
    class Limits extends WeirService {
      readonly config = input as never;
    }
    const call = () => new Limits(createExecutionContext(), {}).limit("api").catch(() => {});
    await call();
    const reads = readRules.mock.calls.length;
    await call();
    expect(readRules).toHaveBeenCalledTimes(reads);
  });

  it("is accepted by a service even if the object cannot be written as JSON", async () => {
    const input = { ...INPUT, self: undefined as unknown };
    input.self = input;
    class Limits extends WeirService {
      readonly config = input as ConfigInput;
    }
    await expect(new Limits(createExecutionContext(), {}).limit("api")).rejects.toThrow(
      ConfigError,
    );
  });

  it("keeps one counter although each call to the service creates a new object", async () => {
    class Limits extends WeirService {
      // Functions are also new in each instance, but a service calls no function.
      readonly config: ConfigInput = { ...INPUT, custom: { keys: { plan: () => "gold" } } };
    }
    const oks = [];
    for (let call = 0; call < 3; call++) {
      oks.push((await new Limits(createExecutionContext(), {}).limit("api")).ok);
    }
    expect(oks).toEqual([true, true, false]);
  });
});

it("the checked configurations of a service's instances may differ", async () => {
  const free = defineConfig({ ...INPUT, prefix: "free" });
  const rules: RuleInput[] = [{ name: "api", limit: 50, window: "1h" }];
  const paid = defineConfig({ ...INPUT, prefix: "paid", rules });
  let isPaid = true;
  class Limits extends WeirService {
    get config() {
      return isPaid ? paid : free;
    }
  }
  const limits = [];
  for (isPaid of [true, false, true]) {
    const { quotas = [] } = await new Limits(createExecutionContext(), {}).limit("api");
    limits.push(quotas.map(({ limit, remaining }) => [limit, remaining]));
  }
  expect(limits).toEqual([[[50, 49]], [[2, 1]], [[50, 48]]]);
});

describe("a rule for programs", () => {
  const input = {
    store: "memory",
    rules: [
      { name: "tokens", for: "programs", key: "custom:account", limit: 1, window: "1h" },
      { name: "all", key: "global", limit: 3, window: "1h" },
    ],
  } as const;

  it("counts no HTTP request in front of an origin, in front of next, or in an app", async () => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
    const app = new Hono().use(rateLimit(input));
    app.get("/", (c) => c.text("ok"));
    const { fetch } = weir(input);
    const responses = [
      await fetch(request(), {}, createExecutionContext()),
      await fetch(request(), {}, createExecutionContext(), next),
      await app.request("/"),
    ];
    expect(responses.map(({ headers }) => headers.get("ratelimit-policy"))).toEqual(
      Array(3).fill('"all";q=3;w=3600'),
    );
  });

  it("counts calls to a service by a key that may be any text", async () => {
    class Limits extends WeirService<typeof input> {
      readonly config = input;
    }
    const service = new Limits(createExecutionContext(), {});
    const oks = [];
    for (const key of ["a", "b", "a"]) oks.push((await service.limit("tokens", { key })).ok);
    expect(oks).toEqual([true, true, false]);
  });

  it("cannot be the only rule of a middleware", () => {
    expect(() => rateLimit(input, { rule: "tokens" })).toThrow(
      new RangeError(
        'The rule "tokens" has for: "programs", so it counts no HTTP request. Remove this field from the rule, or call the rule through WeirService.',
      ),
    );
  });

  it("does not apply its onError to a request that fails before Weir finds the rules", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const [tokens, all] = input.rules;
    const statusOf = async (rule: RuleInput) => {
      const { fetch } = weir({ store: "memory", rules: [{ ...rule, onError: "closed" }] });
      const broken = request() as Request;
      const headers = vi.fn(() => new Headers());
      headers.mockImplementationOnce(() => {
        throw new Error("broken");
      });
      Object.defineProperty(broken, "headers", { get: headers });
      return (await fetch(broken as never, {}, createExecutionContext(), next)).status;
    };
    expect(await statusOf(tokens)).toBe(200);
    expect(await statusOf(all)).toBe(503);
  });
});

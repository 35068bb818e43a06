import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { sign } from "hono/jwt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ConfigInput,
  defineConfig,
  type LimitClient,
  type RuleInput,
} from "../../src/config/index.ts";
import type { LimitSource } from "../../src/config/limit-source.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { rateLimit, weir } from "../../src/index.ts";
import { ClientLimits, MAX_KNOWN } from "../../src/request/client-limits.ts";

const SOURCE = { from: "custom:quota", max: 1000, default: 5 } as const;
const RULE: RuleInput = { name: "api", key: "header:x-api-key", limit: SOURCE, window: "1h" };
const SECRET = "a-secret-of-more-than-thirty-two-characters";
const JWT = { secret: "JWT_SECRET", alg: "HS256" } as const;

const realSetTimeout = setTimeout;
/** The hours by which the tests of log lines differ. */
let hours = 0;

beforeEach(() => {
  const toFake = ["Date", "setTimeout", "clearTimeout"] as const;
  vi.useFakeTimers({ toFake: [...toFake], now: 1_700_002_800_000 });
});

/** Lets the faked time pass until a promise has settled. Hashing a key takes real time. */
async function settled<Result>(promise: Promise<Result>): Promise<Result> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  promise.then(end, end);
  for (let turn = 0; !isOver && turn < 1000; turn++) {
    await new Promise((resolve) => realSetTimeout(resolve, 0));
    await vi.advanceTimersByTimeAsync(turn < 5 ? 0 : 10);
  }
  return promise;
}

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

type Quota = (client: LimitClient) => unknown;

/** Creates a Worker whose function answers as the test says. */
function worker(
  quota: Quota,
  rules: readonly RuleInput[] = [RULE],
  more: Partial<ConfigInput> = {},
) {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
  const lines: Record<string, unknown>[] = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => void lines.push(JSON.parse(line)));
  }
  const asked: LimitClient[] = [];
  const ask = (client: LimitClient) => {
    asked.push(client);
    return quota(client) as number;
  };
  const bindings = { COUNTERS: env.COUNTERS, JWT_SECRET: SECRET };
  const { fetch } = weir({
    store: "memory",
    prefix: crypto.randomUUID(),
    rules,
    custom: { limits: { quota: ask } },
    ...more,
  });
  const send = async (headers: Record<string, string> = { "x-api-key": "abc" }, init = {}) => {
    const all = { "cf-connecting-ip": "203.0.113.7", ...headers };
    const request = new Request("https://api.example.com/", { ...init, headers: all });
    const ctx = createExecutionContext();
    return settled(fetch(request as never, bindings, ctx));
  };
  return { send, asked, lines };
}

/** Returns the limit of each policy that a response shows. */
function limitsOf(response: Response): number[] {
  const policies = response.headers.get("ratelimit-policy") ?? "";
  return [...policies.matchAll(/q=(\d+)/g)].map(([, limit]) => Number(limit));
}

function remaining(response: Response): number {
  return Number(/r=(\d+)/.exec(response.headers.get("ratelimit") ?? "")?.[1]);
}

describe("a limit from a function", () => {
  it("is the client's own number", async () => {
    const numbers: Record<string, number> = { abc: 50, other: 0 };
    const { send, asked } = worker(({ key }) => numbers[key]);
    expect(limitsOf(await send())).toEqual([50]);
    expect((await send({ "x-api-key": "other" })).status).toBe(429);
    expect(asked.map(({ key, keys }) => ({ key, keys }))).toEqual([
      { key: "abc", keys: ["abc"] },
      { key: "other", keys: ["other"] },
    ]);
  });

  it.each([
    ["max for a higher number", () => 5000, 1000, undefined],
    ["the default without a number", () => undefined, 5, "missing"],
    ["the default for null", () => null, 5, "missing"],
    ["the default for a text", () => "50", 5, "invalid"],
    ["the default for a fraction", () => 1.5, 5, "invalid"],
    ["the default for a negative number", () => -1, 5, "invalid"],
    ["the default for NaN", () => Number.NaN, 5, "invalid"],
    [
      "the default if it throws",
      () => {
        throw new Error("secret");
      },
      5,
      "threw",
    ],
    ["the default if it rejects", () => Promise.reject(new Error("secret")), 5, "threw"],
    ["the default if it never ends", () => new Promise(() => {}), 5, "timeout"],
  ])("is %s, and one line says so without the value", async (_, quota, limit, cause) => {
    const { send, lines } = worker(quota);
    // Earlier tests have logged failures at this time.
    hours++;
    vi.setSystemTime(Date.now() + hours * 3_600_000);
    expect(limitsOf(await send())).toEqual([limit]);
    const client = expect.stringMatching(/^[\w-]{22}$/);
    const failed = { weir: "limit-unreadable", source: "custom:quota", cause, client };
    expect(lines).toEqual(cause ? [failed] : []);
  });

  it("is the default for a request without the key, and the function is not asked", async () => {
    const { send, asked } = worker(() => 50);
    expect(limitsOf(await send({}))).toEqual([5]);
    expect(asked).toEqual([]);
  });

  it("gives the function the request without its body", async () => {
    const { send, asked } = worker(() => 50);
    const init = { method: "POST", body: "text" };
    expect((await send({ "x-api-key": "abc", "x-plan": "pro" }, init)).status).toBe(200);
    const { request } = asked[0] as { request: Request };
    expect([request.method, request.headers.get("x-plan"), request.body]).toEqual([
      "POST",
      "pro",
      null,
    ]);
  });

  it("is asked for once a minute, and many requests at once cause one call", async () => {
    const { send, asked } = worker(() => new Promise((resolve) => setTimeout(resolve, 50, 50)));
    const all = await Promise.all(Array.from({ length: 20 }, () => send()));
    expect(all.map(limitsOf)).toEqual(Array(20).fill([50]));
    expect(asked.length).toBe(1);
    await vi.advanceTimersByTimeAsync(58_000);
    await send();
    expect(asked.length).toBe(1);
    await vi.advanceTimersByTimeAsync(2000);
    await send();
    expect(asked.length).toBe(2);
  });

  it.each([
    ["0s", 3],
    ["1h", 1],
  ] as const)("is asked for again after cacheFor: %s", async (cacheFor, calls) => {
    const rule = { ...RULE, limit: { ...SOURCE, cacheFor } };
    const { send, asked } = worker(() => 50, [rule]);
    for (let request = 0; request < 3; request++) await send();
    await vi.advanceTimersByTimeAsync(3_000_000);
    expect(asked.length).toBe(calls);
  });

  it("is not asked for while the client is denied from memory", async () => {
    let number = 2;
    const { send, asked } = worker(() => number, [{ ...RULE, lease: false }], {
      store: "durable-object",
    });
    for (let request = 0; request < 3; request++) await send();
    await vi.advanceTimersByTimeAsync(59_500);
    // The store denies this request, and the isolate remembers its denial for ten seconds.
    expect((await send()).status).toBe(429);
    number = 10;
    for (let second = 0; second < 9; second++) {
      await vi.advanceTimersByTimeAsync(1000);
      expect((await send()).status).toBe(429);
    }
    expect(asked.length).toBe(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(limitsOf(await send())).toEqual([10]);
    expect(asked.length).toBe(2);
  });

  it("is asked for again while it is 0", async () => {
    let number = 0;
    const { send } = worker(() => number);
    expect((await send()).status).toBe(429);
    number = 10;
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await send()).status).toBe(200);
  });

  it("keeps the used quota when it changes", async () => {
    let number = 10;
    const { send } = worker(() => number);
    for (let request = 0; request < 8; request++) await send();
    number = 20;
    await vi.advanceTimersByTimeAsync(60_000);
    const raised = await send();
    expect([limitsOf(raised), remaining(raised)]).toEqual([[20], 11]);
    number = 5;
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await send()).status).toBe(429);
  });

  it("keeps the last number if the function fails later, and loses it if there is none", async () => {
    let answer: () => unknown = () => 50;
    const { send } = worker(() => answer());
    expect(limitsOf(await send())).toEqual([50]);
    answer = () => {
      throw new Error("down");
    };
    await vi.advanceTimersByTimeAsync(60_000);
    expect(limitsOf(await send())).toEqual([50]);
    answer = () => undefined;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(limitsOf(await send())).toEqual([5]);
  });

  it("uses an answer that comes too late for the next requests", async () => {
    const { send } = worker(() => new Promise((resolve) => setTimeout(resolve, 2000, 50)));
    expect(limitsOf(await send())).toEqual([5]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(limitsOf(await send())).toEqual([50]);
  });

  it("makes only one request wait for a function that never ends", async () => {
    const { send, asked } = worker(() => new Promise(() => {}));
    await send();
    const startedAt = Date.now();
    expect(limitsOf(await send())).toEqual([5]);
    expect([asked.length, Date.now() - startedAt]).toEqual([1, 0]);
  });

  it("that has fallen meanwhile denies a request that waits", async () => {
    let number = 1;
    const limit = { ...SOURCE, cacheFor: "0s" } as const;
    const { send } = worker(() => number, [{ ...RULE, limit, window: "1m", wait: "60s" }]);
    expect((await send()).status).toBe(200);
    let status: number | undefined;
    const waiting = send().then((response) => {
      status = response.status;
    });
    await vi.advanceTimersByTimeAsync(1000);
    number = 0;
    expect((await send()).status).toBe(429);
    expect(status).toBeUndefined();
    await vi.advanceTimersByTimeAsync(60_000);
    await waiting;
    expect(status).toBe(429);
  });

  it("is the newest one for a rule with the mode mark", async () => {
    let number = 2;
    const { send } = worker(() => number, [{ ...RULE, mode: "mark" }], {
      store: "durable-object",
    });
    expect(limitsOf(await send())).toEqual([2]);
    number = 100;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(limitsOf(await send())).toEqual([100]);
  });

  it("limits capacity and open requests too", async () => {
    const rules: readonly RuleInput[] = [
      {
        name: "api",
        key: "header:x-api-key",
        limit: { from: "custom:quota", max: 100, default: 10 },
        capacity: { from: "custom:quota", max: 200, default: 20 },
        window: "1h",
        concurrent: { from: "custom:quota", max: 4, default: 2 },
      },
    ];
    const { send, asked } = worker(() => 150, rules);
    const response = await send();
    expect(limitsOf(response)).toEqual([100, 4]);
    expect(remaining(response)).toBe(149);
    expect(asked.length).toBe(1);
  });

  it.each([
    [7, 7],
    [5, 7],
    [20, 20],
  ])(
    "with a capacity of %i beside a limit of 7, lets %i requests pass at once",
    async (capacity, passed) => {
      const rule: RuleInput = {
        ...RULE,
        limit: 7,
        capacity: { from: "custom:quota", max: 50, default: 10 },
      };
      const { send } = worker(() => capacity, [rule]);
      const statuses = [];
      for (let request = 0; request < 21; request++) statuses.push((await send()).status);
      expect(statuses.filter((status) => status === 200).length).toBe(passed);
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect((await send()).status).toBe(200);
    },
  );

  it("is looked up at most once for each client, isolate and minute, and not for denied requests", async () => {
    const keys = Array.from({ length: 10 }, (_, index) => `client-${index}`);
    const isolates = Array.from({ length: 3 }, () => worker(() => 7, [{ ...RULE, window: "1m" }]));
    const statuses = { 200: 0, 429: 0 };
    for (let request = 0; request < 600; request++) {
      const { send } = isolates[request % 3] as (typeof isolates)[0];
      const { status } = await send({ "x-api-key": keys[(request * 7) % 10] as string });
      statuses[status as 200] += 1;
      await vi.advanceTimersByTimeAsync(200);
    }
    const lookups = isolates.flatMap(({ asked }) => asked).length;
    expect(lookups).toBeLessThanOrEqual(60);
    expect(statuses[429]).toBeGreaterThan(0);
  });

  it("works in a tier", async () => {
    const tiers = {
      by: "header:x-plan",
      limits: { pro: { limit: SOURCE, window: "1h" } },
    } as const;
    const { send } = worker(() => 50, [{ ...RULE, limit: 7, tiers }]);
    expect(limitsOf(await send())).toEqual([7]);
    expect(limitsOf(await send({ "x-api-key": "abc", "x-plan": "pro" }))).toEqual([50]);
  });

  it("works in the middleware", async () => {
    const config = {
      store: "memory" as const,
      prefix: crypto.randomUUID(),
      rules: [RULE],
      custom: { limits: { quota: () => 50 } },
    };
    const app = new Hono().use(rateLimit(config)).get("/", (c) => c.text("hello"));
    const headers = { "x-api-key": "abc" };
    const answer = Promise.resolve(app.request("/", { headers }, { COUNTERS: env.COUNTERS }));
    expect(limitsOf(await settled(answer))).toEqual([50]);
  });
});

describe("a limit from a claim", () => {
  const rule: RuleInput = {
    name: "plan",
    key: "jwt:sub",
    limits: [
      { limit: { from: "jwt:/limits/rpm", max: 6000, default: 60 }, window: "1m" },
      { limit: 1_000_000, window: "month" },
    ],
  };
  const bearer = async (limits: unknown) => {
    const exp = Math.floor(Date.now() / 1000) + 600;
    return { authorization: `Bearer ${await sign({ sub: "me", limits, exp }, SECRET, "HS256")}` };
  };

  it.each([
    [{ rpm: 600 }, 600],
    [{ rpm: "600" }, 600],
    [{ rpm: 7000 }, 6000],
    [{ rpm: 0.5 }, 60],
    [{}, 60],
    [undefined, 60],
  ])("is read from %j as %i", async (limits, expected) => {
    const { send } = worker(() => 1, [rule], { jwt: JWT });
    expect(limitsOf(await send(await bearer(limits)))).toEqual([expected, 1_000_000]);
  });

  it("is the default without a token", async () => {
    const { send, lines } = worker(() => 1, [rule], { jwt: JWT });
    expect(limitsOf(await send({}))).toEqual([60, 1_000_000]);
    expect(lines).toEqual([]);
  });
});

describe("the numbers of an isolate", () => {
  const from = { kind: "custom", name: "quota" } as const;
  const source: LimitSource = { ...SOURCE, from, cacheMs: 60_000 };
  const context = { env: {} as never, ctx: { waitUntil() {} } };
  const request = new Request("https://example.com/");

  /** Returns a function that asks for the number of a client. */
  function createLimits(quota: (client: LimitClient) => number | undefined | Promise<number>) {
    const options = { timeoutMs: 500, background: () => {}, onUnreadable: () => {} };
    const limits = new ClientLimits(new Map([["quota", quota]]), options);
    const ask = (identity: string, { from = source, by = { request } } = {}) =>
      limits.numberFor(from, { identity, keys: [identity], ...by }, context, 500);
    return { limits, ask };
  }

  it("are forgotten when there are too many, and asked for again", async () => {
    const { limits, ask } = createLimits(() => 50);
    const identities = Array.from({ length: 2 * MAX_KNOWN }, (_, index) => `client-${index}`);
    for (const identity of identities) await ask(identity);
    const known = identities.filter((identity) => limits.answerOf(source, identity) !== undefined);
    expect(known.length).toBeLessThanOrEqual(MAX_KNOWN);
    expect(known.length).toBeGreaterThanOrEqual(MAX_KNOWN / 2);
    expect(known.at(-1)).toBe(identities.at(-1));
    expect(limits.knownOf(source, "client-0")).toBeUndefined();
    expect(await ask("client-0")).toBe(50);
  });

  it("reach the requests that wait for them, although they are forgotten meanwhile", async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const { ask } = createLimits(({ key }) => (key === "slow" ? promise : 7));
    const slow = ask("slow");
    for (let index = 0; index < 2 * MAX_KNOWN; index++) await ask(`client-${index}`);
    resolve(2);
    expect(await slow).toBe(2);
  });

  it("are asked for at most once in each rule's own time", async () => {
    const quota = vi.fn(() => 50);
    const { ask } = createLimits(quota);
    for (let turn = 0; turn < 3; turn++) {
      await ask("someone");
      await ask("someone", { from: { ...source, cacheMs: 0 } });
    }
    expect(quota).toHaveBeenCalledTimes(4);
  });

  it("are not those that a function returns without a request, for a program or an operator", async () => {
    const { ask } = createLimits((client) => (client.request ? 2 : undefined));
    const byProgram = { by: {} as { request: Request } };
    expect(await ask("someone", byProgram)).toBeUndefined();
    expect(await ask("someone")).toBe(2);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await ask("someone", byProgram)).toBe(2);
    expect(await ask("someone")).toBe(2);
  });

  it("are shown to operators as they are used without a request", async () => {
    let number: number | undefined = 20;
    const { limits, ask } = createLimits(({ request: given }) => (given ? 3 : number));
    const from = { ...source, cacheMs: 0 };
    const use = () => ask("someone", { from, by: {} as { request: Request } });
    await ask("someone", { from });
    await vi.advanceTimersByTimeAsync(1);
    expect([await use(), limits.answerOf(from, "someone")]).toEqual([20, 20]);
    number = undefined;
    expect([await use(), limits.answerOf(from, "someone")]).toEqual([3, 3]);
  });

  it("reach a request that waits, although its client had no limit when it came", async () => {
    const { limits, ask } = createLimits(() => 7);
    const [rule] = defineConfig({
      rules: [{ ...RULE, limit: { ...SOURCE } }],
      custom: { limits: { quota: () => 7 } },
    }).rules as [Rule];
    const [window] = rule.windows as [Window];
    await ask("someone", { from: window.from?.limit as LimitSource });
    const { windows } = limits.current({ windows: rule.windows, identity: "someone" });
    expect(windows.map(({ limit }) => limit)).toEqual([7]);
  });
});

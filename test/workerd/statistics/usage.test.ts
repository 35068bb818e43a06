import { createExecutionContext, env, waitOnExecutionContext } from "cloudflare:test";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { type LimitGranted, rateLimit, WeirService, weir } from "../../../src/index.ts";
import { undecidedVerdict } from "../../../src/limiter/decision.ts";
import { writeUsage } from "../../../src/statistics/usage.ts";
import { allowed, applied, undecided } from "./decisions.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const IDENTITY = /^[\w-]{22}$/;
const API = { name: "api", key: "header:x-client", limit: 2, window: "1m" } as const;

/** A data set that keeps its points as lists: rule, tier, outcome, mode, requests, quota. */
function createDataset() {
  const points: unknown[][] = [];
  const clients = new Set<string>();
  const writeDataPoint = ({ indexes = [], blobs = [], doubles = [] }: AnalyticsEngineDataPoint) => {
    expect(indexes).toEqual([expect.stringMatching(IDENTITY)]);
    clients.add(String(indexes[0]));
    points.push([...blobs, ...doubles]);
  };
  return { points, clients, writeDataPoint };
}

type Rules = readonly RuleInput[];
type Fields = Partial<ConfigInput>;

function configOf(rules: Rules, fields: Fields = {}) {
  return defineConfig({ store: "memory", usage: { binding: "USAGE" }, ...fields, rules });
}

/** Sends requests of one client through the Worker, each to its end. */
function sender(
  rules: Rules,
  {
    USAGE,
    bindings,
    answer = () => new Response("ok"),
    fields,
  }: {
    USAGE?: unknown;
    bindings?: object;
    answer?: (request: Request) => Response;
    fields?: Fields;
  },
) {
  const { fetch } = weir(configOf(rules, fields));
  return async (headers: Record<string, string> = {}) => {
    const ctx = createExecutionContext();
    const request = new Request("https://api.example.com/", {
      headers: { "x-client": "secret-key", ...headers },
    });
    const app = async (admitted: Request) => answer(admitted);
    const response = await fetch(request as never, { USAGE, ...bindings }, ctx, app as never);
    await response.text();
    await waitOnExecutionContext(ctx);
    return response.status;
  };
}

function createService(rules: Rules, bindings: object, fields?: Partial<ConfigInput>) {
  const config = configOf(rules, fields);
  class Limits extends WeirService {
    readonly config = config;
  }
  return new Limits(createExecutionContext(), bindings as never);
}

describe("the data points of a request", () => {
  it("are one for each rule that counted it, with its quota", async () => {
    const USAGE = createDataset();
    const send = sender(
      [
        { ...API, cost: 2, limit: 5 },
        { ...API, name: "other" },
      ],
      { USAGE },
    );
    await send();
    expect(USAGE.points).toEqual([
      ["api", "", "allowed", "enforce", 1, 2],
      ["other", "", "allowed", "enforce", 1, 1],
    ]);
    expect(USAGE.clients.size).toBe(1);
  });

  it("are one of the rule that denied it, which charged nothing", async () => {
    const USAGE = createDataset();
    const send = sender([{ ...API, name: "wide", limit: 100 }, API], { USAGE });
    const statuses = [await send(), await send(), await send(), await send()];
    expect(statuses).toEqual([200, 200, 429, 429]);
    expect(USAGE.points.slice(4)).toEqual([
      ["api", "", "limited", "enforce", 1, 0],
      ["api", "", "limited", "enforce", 1, 0],
    ]);
  });

  it("say what rules in shadow mode and with marks would have done", async () => {
    const USAGE = createDataset();
    const trial = { ...API, name: "trial", limit: 1, mode: "shadow" } as const;
    const plan = { ...API, name: "plan", limit: 1, mode: "mark" } as const;
    const send = sender([API, trial, plan], { USAGE });
    expect([await send(), await send()]).toEqual([200, 200]);
    expect(USAGE.points.toSorted()).toEqual([
      ["api", "", "allowed", "enforce", 1, 1],
      ["api", "", "allowed", "enforce", 1, 1],
      ["plan", "", "allowed", "mark", 1, 1],
      ["plan", "", "marked", "mark", 1, 0],
      ["trial", "", "allowed", "shadow", 1, 1],
      ["trial", "", "shadow-limited", "shadow", 1, 0],
    ]);
  });

  it("name the client's tier, and no tier that the rule lacks", async () => {
    const USAGE = createDataset();
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 9, window: "1m" } } } as const;
    const send = sender([{ ...API, tiers }], { USAGE });
    await send({ "x-plan": "pro" });
    await send({ "x-plan": "made-up" });
    await send();
    expect(USAGE.points.map(([, tier]) => tier)).toEqual(["pro", "", ""]);
  });

  it("are none for an exempt request and for one without a rule", async () => {
    const USAGE = createDataset();
    const exempt = { ...API, exempt: { headers: { "x-probe": { secret: "PROBE" } } } } as const;
    const bindings = { PROBE: "internal-probe-token" };
    const send = sender([exempt], { USAGE, bindings });
    expect(await send({ "x-probe": bindings.PROBE })).toBe(200);
    const unmatched = sender([{ ...API, match: { paths: ["/api"] } }], { USAGE });
    expect(await unmatched()).toBe(200);
    expect(USAGE.points).toEqual([]);
    await send();
    expect(USAGE.points).toHaveLength(1);
  });

  it("are written when the late key of a rule in shadow mode is known", async () => {
    const USAGE = createDataset();
    const tenant = () => scheduler.wait(20).then(() => "acme");
    const trial = { ...API, name: "trial", key: "custom:tenant", mode: "shadow" } as const;
    await sender([API, trial], { USAGE, fields: { custom: { keys: { tenant } } } })();
    await expect.poll(() => USAGE.points).toHaveLength(2);
    expect(USAGE.points).toEqual([
      ["api", "", "allowed", "enforce", 1, 1],
      ["trial", "", "allowed", "shadow", 1, 1],
    ]);
  });

  it("are none for a rule whose client stays unknown", async () => {
    const USAGE = createDataset();
    const known = applied({ name: "trial", mode: "shadow" }, "a".repeat(22));
    const pendingRules = Promise.reject(new Error("internal"));
    const unknown = { ...known, identity: "", pendingRules };
    const tasks: Promise<unknown>[] = [];
    const background = (task: Promise<unknown>) => tasks.push(task);
    const decided = allowed({ verdicts: [undecidedVerdict(unknown, new Error("internal"))] });
    for (const decision of [decided, undecided(true)]) {
      writeUsage(USAGE, [unknown], decision, background);
    }
    await Promise.all(tasks);
    expect(USAGE.points).toEqual([]);
  });

  it("say whether the store charged or denied what passed ahead", async () => {
    const USAGE = createDataset();
    const { COUNTERS } = env;
    const fields: Fields = { store: "durable-object", prefix: crypto.randomUUID() };
    const rules = [{ ...API, async: true }];
    const send = sender(rules, { USAGE, bindings: { COUNTERS }, fields });
    for (const [sent, status] of [200, 200, 200, 429].entries()) {
      expect(await send()).toBe(status);
      await expect.poll(() => USAGE.points).toHaveLength(sent + 1);
    }
    expect(USAGE.points).toEqual([
      ["api", "", "ahead", "enforce", 1, 1],
      ["api", "", "ahead", "enforce", 1, 1],
      ["api", "", "over", "enforce", 1, 0],
      ["api", "", "limited", "enforce", 1, 0],
    ]);
  });

  it("are one for a request that has waited", async () => {
    const USAGE = createDataset();
    vi.useRealTimers();
    const send = sender([{ ...API, limit: 1, window: "1s", wait: "2s" }], { USAGE });
    expect(await Promise.all([send(), send()])).toEqual([200, 200]);
    const point = ["api", "", "allowed", "enforce", 1, 1];
    expect(USAGE.points).toEqual([point, point]);
  });

  it("say that the store could not decide", async () => {
    const USAGE = createDataset();
    const bindings = {
      UPSTASH_REDIS_REST_URL: "https://store.example.com",
      UPSTASH_REDIS_REST_TOKEN: "token",
    };
    vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("down"));
    const rules = [API, { ...API, name: "trial", mode: "shadow" }] as const;
    await sender(rules, { USAGE, bindings, fields: { store: "upstash" } })();
    const local = [{ ...API, onError: "local" }, rules[1]] as const;
    await sender(local, { USAGE, bindings, fields: { store: "upstash" } })();
    expect(USAGE.points).toEqual([
      ["api", "", "undecided", "enforce", 1, 0],
      ["trial", "", "undecided", "shadow", 1, 0],
      ["api", "", "allowed", "enforce", 1, 1],
      ["trial", "", "undecided", "shadow", 1, 0],
    ]);
  });
});

describe("the data points of a response", () => {
  const used = (tokens: number) => () =>
    new Response("ok", { headers: { "x-tokens": `${tokens}` } });

  it.each([
    [70, -30],
    [130, 30],
  ])("have the difference from the reserve: %i of 100", async (tokens, difference) => {
    const USAGE = createDataset();
    const cost = { reserve: 100, settle: "header:x-tokens" } as const;
    const trial = { ...API, name: "trial", limit: 1000, cost, mode: "shadow" } as const;
    const rules = [{ ...API, limit: 1000, cost }, trial];
    await sender(rules, { USAGE, answer: used(tokens) })();
    expect(USAGE.points.toSorted()).toEqual([
      ["api", "", "allowed", "enforce", 1, 100],
      ["api", "", "settled", "enforce", 0, difference],
      ["trial", "", "allowed", "shadow", 1, 100],
      ["trial", "", "settled", "shadow", 0, difference],
    ]);
  });

  it("have the whole cost if only the response determines it", async () => {
    const USAGE = createDataset();
    const rule = { ...API, limit: 1000, cost: "header:x-tokens" } as const;
    await sender([rule], { USAGE, answer: used(7) })();
    expect(USAGE.points).toEqual([
      ["api", "", "allowed", "enforce", 1, 0],
      ["api", "", "settled", "enforce", 0, 7],
    ]);
  });

  it("are none if the response changes nothing", async () => {
    const USAGE = createDataset();
    const rule = { ...API, count: { status: [401] } };
    await sender([rule], { USAGE })();
    expect(USAGE.points).toEqual([["api", "", "allowed", "enforce", 1, 0]]);
  });
});

describe("the data points of programs", () => {
  it("are those of calls that take quota, of settlements and of refunds", async () => {
    const USAGE = createDataset();
    const cost = { reserve: 100, settle: "header:x-tokens" } as const;
    const tiers = { by: "header:x-plan", limits: { pro: { limit: 9000, window: "1m" } } } as const;
    const service = createService([{ ...API, limit: 1000, cost, tiers }], { USAGE });
    const client = { key: "a", tier: "pro" };
    const { reserved } = (await service.limit("api", client)) as LimitGranted;
    await service.settle("api", { ...client, reserved: reserved as never, used: 60 });
    await service.limit("api", { ...client, cost: -5 });
    await service.check("api", client);
    await service.getValue("api", client);
    await service.limit("api", { ...client, cost: 10_000 });
    expect(USAGE.points).toEqual([
      ["api", "pro", "allowed", "enforce", 1, 100],
      ["api", "pro", "settled", "enforce", 0, -40],
      ["api", "pro", "settled", "enforce", 0, -5],
      ["api", "pro", "limited", "enforce", 1, 0],
    ]);
  });

  it("are none for a settlement and a refund that the store does not carry out", async () => {
    const USAGE = createDataset();
    const cost = { reserve: 100, settle: "header:x-tokens" } as const;
    const rules = [{ ...API, limit: 1000, cost }] as const;
    const bindings = {
      UPSTASH_REDIS_REST_URL: "https://store.example.com",
      UPSTASH_REDIS_REST_TOKEN: "token",
    };
    vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("down"));
    const service = createService(rules, { USAGE, ...bindings }, { store: "upstash" });
    await service.limit("api", { key: "a", cost: -5 });
    expect(USAGE.points).toEqual([]);
  });

  it("have the client of HTTP requests with the same key", async () => {
    const USAGE = createDataset();
    await sender([API], { USAGE })();
    await createService([API], { USAGE }).limit("api", { key: "secret-key" });
    expect(USAGE.points).toHaveLength(2);
    expect(USAGE.clients.size).toBe(1);
  });

  it("are those of a Hono app with the middleware", async () => {
    const USAGE = createDataset();
    const app = new Hono().use(rateLimit(configOf([API])));
    app.get("/", (c) => c.text("app"));
    await app.request("/", { headers: { "x-client": "a" } }, { USAGE });
    expect(USAGE.points).toEqual([["api", "", "allowed", "enforce", 1, 1]]);
  });
});

describe("a data set that does not work", () => {
  it("changes no response and no call if it throws", async () => {
    const writeDataPoint = vi.fn(() => {
      throw new Error("too many data points");
    });
    const USAGE = { writeDataPoint };
    const cost = { reserve: 1, settle: "header:x-tokens" } as const;
    const trial = { ...API, name: "trial", mode: "shadow" } as const;
    const send = sender([{ ...API, cost }, trial], {
      USAGE,
      answer: () => new Response("ok", { headers: { "x-tokens": "2" } }),
    });
    expect([await send(), await send()]).toEqual([200, 429]);
    const service = createService([API], { USAGE });
    expect(await service.limit("api", { key: "a" })).toMatchObject({ ok: true });
    expect(await service.limit("api", { key: "a", cost: -1 })).toMatchObject({ ok: true });
    expect(writeDataPoint).toHaveBeenCalledTimes(7);
  });

  it.each([undefined, "text", {}])("is logged once, and requests pass: %j", async (USAGE) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const send = sender([API], { USAGE });
    expect([await send(), await send(), await send()]).toEqual([200, 200, 429]);
    const lines = log.mock.calls.map(([line]) => String(line));
    expect(lines).toEqual([
      '{"weir":"misconfigured","fault":"no data set of Analytics Engine is bound as USAGE, so Weir writes no use by client: add it to wrangler.toml"}',
    ]);
  });

  it("gets nothing without the field usage", async () => {
    const USAGE = createDataset();
    await sender([API], { USAGE, fields: { usage: undefined } })();
    expect(USAGE.points).toEqual([]);
  });
});

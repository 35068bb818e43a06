import { createExecutionContext, reset, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type ConfigInput,
  defineConfig,
  type QuotaEvent,
  type RuleInput,
} from "../../src/config/index.ts";
import { type LimitGranted, WeirService, weir } from "../../src/index.ts";
import { NOW } from "../suite/driver.ts";

const SECRET_KEY = "a-secret-api-key";
const ADDRESS = "203.0.113.7";

let lines: { weir: string }[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  lines = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => void lines.push(JSON.parse(line)));
  }
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("found"));
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
});

const BINDINGS = { ...env, WEIR_CONTROL: undefined };
const RULE = { key: "header:x-api-key", limit: 5, window: "1h", notify: [0.8, 1] } as const;

type Events = (event: QuotaEvent, context: { env: unknown }) => unknown;

/** Creates a Worker in front of an origin. Each has a rule of its own name, and so counters of its own. */
function workerWith(fields: Partial<RuleInput>, events?: Events, limits = {}) {
  const name = `r-${crypto.randomUUID()}`;
  const config = {
    rules: [{ name, ...RULE, ...fields } as RuleInput],
    custom: { limits, ...(events && { events: events as () => void }) },
    timeoutMs: 10_000,
  };
  const { fetch } = weir(config);
  const send = async (times: number, path = "/private") => {
    const statuses = [];
    for (let each = 0; each < times; each++) {
      const headers = { "CF-Connecting-IP": ADDRESS, "x-api-key": SECRET_KEY };
      const context = createExecutionContext();
      const request = new Request(`https://api.example${path}`, { headers });
      statuses.push((await fetch(request as never, BINDINGS, context)).status);
      await waitOnExecutionContext(context);
    }
    // The tasks of `waitUntil` from cloudflare:workers belong to no context.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return statuses;
  };
  return { name, config, send };
}

const linesOf = (event: string) => lines.filter(({ weir: name }) => name === event);

describe("a rule with notify", () => {
  it("logs each share once, calls custom.events, and shows neither key, address nor path", async () => {
    const events = vi.fn<Events>();
    const { name, send } = workerWith({}, events);
    expect(await send(7)).toEqual([200, 200, 200, 200, 200, 429, 429]);
    const event = { mode: "enforce", rule: name, policy: name, limit: 5, resetAt: NOW + 3_600_000 };
    const client = expect.stringMatching(/^[\w-]{22}$/);
    const expected = [
      { ...event, client, share: 0.8, used: 4 },
      { ...event, client, share: 1, used: 5 },
    ];
    expect(linesOf("quota-used")).toEqual(
      expected.map((each) => ({ weir: "quota-used", ...each })),
    );
    expect(events.mock.calls.map(([each]) => each)).toEqual(expected);
    const text = JSON.stringify([lines, events.mock.calls.map(([each]) => each)]);
    for (const canary of [SECRET_KEY, ADDRESS, "private"]) expect(text).not.toContain(canary);
  });

  it("passes the bindings and waitUntil to custom.events", async () => {
    const events = vi.fn<Events>();
    await workerWith({ notify: [0.2] }, events).send(1);
    const context = events.mock.calls[0]?.[1];
    expect(context).toMatchObject({ env: { COUNTERS: env.COUNTERS } });
    expect(context).toHaveProperty("ctx.waitUntil");
  });

  it.each([
    ["count", { count: { status: [200] } }],
    ["cost", { cost: { settle: "header:x-cost", default: 1 } }],
  ] as const)("tells a charge after the response: %s", async (_, fields) => {
    const { send } = workerWith(fields as Partial<RuleInput>);
    expect(await send(6)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(linesOf("quota-used")).toMatchObject([{ share: 0.8 }, { share: 1 }]);
  });

  it.each(["shadow", "mark"] as const)("tells its mode: %s", async (mode) => {
    const { send } = workerWith({ mode });
    expect(await send(6)).toEqual(Array(6).fill(200));
    expect(linesOf("quota-used")).toMatchObject([
      { mode, share: 0.8 },
      { mode, share: 1 },
    ]);
  });

  it("does not wait for custom.events, and survives its failure", async () => {
    const never = workerWith({}, () => new Promise(() => {}));
    expect(await never.send(6)).toEqual([200, 200, 200, 200, 200, 429]);
    const { name, send } = workerWith({}, () => {
      throw new Error(SECRET_KEY);
    });
    expect(await send(6)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(linesOf("event-failed")).toEqual([{ weir: "event-failed", rule: name }]);
    expect(linesOf("quota-used")).toHaveLength(4);
    expect(JSON.stringify(lines)).not.toContain(SECRET_KEY);
  });

  it("tells the shares of each window and of the client's tier", async () => {
    const tiers = {
      by: "header:x-api-key",
      limits: {
        [SECRET_KEY]: {
          limits: [
            { limit: 4, window: "1m" },
            { limit: 10, window: "1d" },
          ],
        },
      },
    };
    const { name, send } = workerWith({ tiers, notify: [0.5] } as Partial<RuleInput>);
    await send(4);
    expect(linesOf("quota-used")).toMatchObject([{ policy: `${name}/1m`, used: 2, limit: 4 }]);
    vi.setSystemTime(NOW + 60_000);
    await send(2);
    expect(linesOf("quota-used").slice(1)).toMatchObject([
      { policy: `${name}/1d`, used: 5, limit: 10 },
      { policy: `${name}/1m`, used: 2, limit: 4 },
    ]);
  });

  it("tells the shares of the client's own limit", async () => {
    const limit = { from: "custom:quota", max: 100, default: 50 } as const;
    const { send } = workerWith({ limit, notify: [0.5, 1] }, undefined, { quota: () => 4 });
    await send(5);
    expect(linesOf("quota-used")).toMatchObject([
      { share: 0.5, used: 2, limit: 4 },
      { share: 1, used: 4, limit: 4 },
    ]);
  });

  it("tells a program's calls and settlements, but no check and no refund", async () => {
    const { name, config } = workerWith({
      for: "programs",
      key: "custom:user",
      cost: { reserve: 2 },
      limit: 10,
    });
    class Limits extends WeirService {
      readonly config = defineConfig(config as ConfigInput);
    }
    const service = new Limits(createExecutionContext(), BINDINGS);
    const key = "ann";
    const shares = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return linesOf("quota-used").map((line) => (line as { share?: number }).share);
    };
    await service.check(name, { key, cost: 9 });
    expect(await shares()).toEqual([]);
    const { reserved } = (await service.limit(name, { key })) as LimitGranted;
    await service.settle(name, { key, reserved: reserved as never, used: 8 });
    expect(await shares()).toEqual([0.8]);
    await service.limit(name, { key, cost: -3 });
    await service.check(name, { key, cost: 5 });
    expect(await shares()).toEqual([0.8]);
    await service.limit(name, { key, cost: 5 });
    expect(await shares()).toEqual([0.8, 1]);
  });
});

it("a rule without notify tells nothing", async () => {
  const events = vi.fn<Events>();
  await workerWith({ notify: undefined }, events).send(6);
  expect([events.mock.calls, linesOf("quota-used")]).toEqual([[], []]);
});

import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../../../src/config/index.ts";
import type { Demand } from "../../../../src/engine/counter.ts";
import { weir } from "../../../../src/index.ts";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import {
  type Namespace,
  passTime,
  runIn,
  useVirtualTime,
  wait,
  withObjects,
} from "./objects-in-one.ts";

// Two requests of one client race for the last unit of its limit. The first one matches a shared limit too, which
// denies it. Until then, it holds the unit. The tests enumerate the moments at which the second request begins.

/** How long a message to or from an object travels, in milliseconds. */
const DISTANCE_MS = 25;
const TRIP_MS = 2 * DISTANCE_MS;
/** The first request holds the unit for two trips, and gets its answer after three. */
const MOMENTS = Array.from({ length: 20 }, (_, index) => 9 * index);

beforeEach(() => {
  useVirtualTime();
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response());
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Returns objects that are some milliseconds away. */
function far(objects: Namespace): Namespace {
  type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;
  const getByName = (name: string) =>
    new Proxy(objects.getByName(name) as unknown as Methods, {
      get:
        (object, method: string) =>
        async (...args: unknown[]) => {
          await wait(DISTANCE_MS);
          const answer = await object[method]?.(...args);
          await wait(DISTANCE_MS);
          return answer;
        },
    });
  return { getByName } as unknown as Namespace;
}

const OWN = { name: "own", key: "ip", limit: 1, window: "52w" } as const;
const SHARED = { name: "shared", match: { paths: ["/shared"] }, key: "global", window: "52w" };

type Send = (path: string, client?: string) => Promise<Sent>;

interface Sent {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly tookMs: number;
}

/** Creates the Worker in one isolate. */
function isolate(objects: Namespace, prefix: string, own: Partial<RuleInput>): Send {
  const rules = [
    { ...OWN, ...own },
    { ...SHARED, limit: 1 },
  ] as RuleInput[];
  const { fetch } = weir(
    defineConfig({ store: "durable-object", denialLog: 0, prefix, timeoutMs: 2000, rules }),
  );
  return async (path, client = "203.0.113.7") => {
    const request = new Request(`https://api.example.com${path}`, {
      headers: { "cf-connecting-ip": client },
    });
    const startedAt = Date.now();
    const response = await fetch(
      request as never,
      { COUNTERS: far(objects) },
      createExecutionContext(),
    );
    const { status, headers } = response;
    return { status, retryAfter: headers.get("retry-after"), tookMs: Date.now() - startedAt };
  };
}

describe("a request that meets the last unit of its client's limit held by another one", () => {
  it.each<[string, Partial<RuleInput>]>([
    ["", {}],
    ["with a ban", { ban: "1h" }],
    ["with bans that become longer", { ban: ["1h", "2h"] }],
    ["with one open request", { concurrent: 1, limit: undefined, window: undefined } as never],
  ])("never waits for it, and passes a second later %s", (_, own) =>
    withObjects((objects) => {
      const race = async (moment: number) => {
        const prefix = crypto.randomUUID();
        // Another client has used the shared limit up, in an isolate of its own.
        expect((await isolate(objects, prefix, own)("/shared", "203.0.113.8")).status).toBe(200);
        const send = isolate(objects, prefix, own);
        const first = send("/shared");
        await wait(moment);
        const second = await send("/");
        const at = `begins after ${moment} ms`;
        expect(second.tookMs, at).toBe(TRIP_MS);
        expect((await first).status, at).toBe(429);
        if (second.status === 429) {
          expect(second.retryAfter, at).toBe("1");
          await wait(1000);
          expect((await send("/")).status, at).toBe(200);
        }
        return second.status;
      };
      return passTime(5, Promise.all(MOMENTS.map(race))).then((statuses) => {
        expect(new Set(statuses)).toEqual(new Set([200, 429]));
      });
    }),
  );

  it("is denied for the whole window when the unit is used", () =>
    withObjects((objects) =>
      passTime(
        5,
        (async () => {
          const send = isolate(objects, crypto.randomUUID(), {});
          const first = send("/shared");
          await wait(TRIP_MS);
          expect(await send("/")).toMatchObject({ status: 429, retryAfter: "1" });
          expect((await first).status).toBe(200);
          await wait(TRIP_MS);
          const { status, retryAfter } = await send("/");
          expect(status).toBe(429);
          expect(Number(retryAfter)).toBeGreaterThan(86_400);
        })(),
      ),
    ));
});

it("an isolate does not remember a count with held quota, whether its request was admitted or denied", async () => {
  vi.useRealTimers();
  const prefix = "remembers";
  const options = { namespace: env.COUNTERS, prefix, timeoutMs: 10_000 };
  const store = withDenialCache(createDurableObjectStore(options));
  const own = counter({ limit: 3, windowMs: 24 * 3_600_000 });
  const narrow = { ...counter({ limit: 1, windowMs: own.windowMs }), identity: own.identity };
  const object = env.COUNTERS.getByName(`${prefix}:${own.identity}`);
  const admits = async (...group: Demand[]) =>
    (await verdictOf(store.decide([group]))).groups[0]?.admitted;
  // The isolate remembers all counts of a client that one limit denies.
  expect([await admits(own, narrow), await admits(own, narrow)]).toEqual([true, false]);
  await runIn(object, [own], { hold: { id: "one", isFinal: false } });
  expect([await admits(own), await admits(own)]).toEqual([true, false]);
  await object.endHold("one", false);
  expect([await admits(own), await admits(own)]).toEqual([true, false]);
  // A block is for later requests, whose quota is lost if its count is not remembered.
  const leased = counter({ limit: 800, block: 50 });
  await runIn(object, [leased], { hold: { id: "two", isFinal: false } });
  const { tallies } = await runIn(object, [leased]);
  expect(tallies[0]).not.toHaveProperty("isUncertain");
});

import { describe, expect, inject, it } from "vitest";
import { type Demand, type GroupVerdict, windowAt } from "../../../src/engine/counter.ts";
import type { Store } from "../../../src/stores/store.ts";
import { createUpstashStore } from "../../../src/stores/upstash/upstash-store.ts";
import {
  createUpstashClient,
  errors,
  type UpstashClient,
} from "../../../src/stores/upstash/wire.ts";
import { calendarFor, ZONES } from "../../suite/calendar-cases.ts";
import { calendarCounter, checkMoment, expectedMoments } from "../../suite/calendar-suite.ts";
import { bans, counter } from "../../suite/counters.ts";
import { EVERY_STORE } from "../../suite/every-store.ts";
import { runs } from "../../suite/runs.ts";
import { verdictOf } from "../../suite/verdict.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** More than 10,000 pairs of a time and a zone in a long run. */
const MOMENTS = expectedMoments(Math.ceil(runs(10_000) / ZONES.length));

describe("random times in every zone", { timeout: 300_000 }, () => {
  it.each(Object.entries(EVERY_STORE))("%s", async (_, createStore) => {
    const store = createStore("calendar");
    const identity = crypto.randomUUID();
    for (const moment of MOMENTS) await checkMoment(store, moment, identity);
  });

  it("Redis with its own clock, which differs from the Worker's", async () => {
    const clock = { now: 0 };
    const store = storeAt(clock);
    const identity = crypto.randomUUID();
    const skews = [0, 1, -1, 1000, -1000, 5 * 60_000, -5 * 60_000, 11 * HOUR, -11 * HOUR];
    for (const [index, moment] of MOMENTS.entries()) {
      clock.now = moment.now;
      const skew = skews[index % skews.length] as number;
      await checkMoment(store, moment, identity, moment.now + skew);
    }
  });
});

describe("the clock of Redis", () => {
  const noon = Date.UTC(2044, 1, 29, 12);
  const day = calendarFor("day", "UTC");

  it.each([
    ["a day behind", -DAY, true],
    ["a day ahead", DAY, true],
    ["two days behind", -2 * DAY, false],
    ["two days ahead", 2 * DAY, false],
  ])("may differ from the Worker's by one window: %s", async (_, skew, isDecided) => {
    const store = storeAt({ now: noon });
    const decision = verdictOf(store.decide([[calendarCounter(day)]], noon - skew));
    if (!isDecided) {
      await expect(decision).rejects.toMatchObject({
        failure: "error-reply",
        message: expect.stringContaining("differ by a whole window"),
      });
      return;
    }
    const { groups } = await decision;
    expect((groups[0] as GroupVerdict).tallies[0]).toMatchObject({ count: 1, resetMs: DAY / 2 });
  });

  it("is refused before anything is charged", async () => {
    const clock = { now: noon };
    const store = storeAt(clock);
    const [plain, dated] = [calendarCounter(day), calendarCounter(day)];
    clock.now = noon;
    await expect(verdictOf(store.decide([[plain, dated]], noon + 3 * DAY))).rejects.toThrow();
    const { groups } = await verdictOf(store.decide([[{ ...plain, cost: 0 }]], noon));
    expect((groups[0] as GroupVerdict).tallies[0]?.count).toBe(0);
  });

  it.each([{ dependent: true }, { shadow: true }])(
    "fails only a group that needs the time of the Worker: %o",
    async (role) => {
      const store = storeAt({ now: noon });
      const enforced = [counter({ ban: bans(60_000) })];
      const dated = [
        counter({ ...role }),
        calendarCounter(day, { ...role, ban: bans(60_000, HOUR) }),
        calendarCounter(day, { ...role, limit: 3, ceiling: 5, rollsOver: true }),
      ];
      const after = [counter({ ...role, limit: 7, cost: 2 })];
      const groups = [enforced, dated, after];
      expect(await Promise.allSettled(store.decide(groups, noon + 3 * DAY))).toMatchObject([
        { value: { admitted: true, tallies: [{ count: 1 }] } },
        { reason: { failure: "error-reply" } },
        { value: { admitted: true, tallies: [{ count: 2 }] } },
      ]);
      const reads = [...enforced, ...dated].map((each) => ({ ...each, cost: 0 }));
      const verdict = await verdictOf(store.decide([reads], noon));
      const counts = (verdict.groups[0] as GroupVerdict).tallies.map(({ count }) => count);
      expect(counts).toEqual([1, 0, 0, 0]);
    },
  );

  it("keeps returned quota charged, and decides the groups of the call", async () => {
    const store = storeAt({ now: noon });
    const [dated, plain, enforced] = [calendarCounter(day, { cost: 4 }), counter(), counter()];
    await verdictOf(store.decide([[dated]], noon));
    await verdictOf(store.decide([[{ ...plain, cost: 5 }]], noon));
    const { index } = windowAt(noon, dated);
    const unused = [0, index].map((window) => ({ counter: dated, quota: 3, window }));
    const returned = { counter: plain, quota: 2, window: windowAt(noon, plain).index };
    const { groups } = await verdictOf(
      store.decide([[enforced]], noon + 3 * DAY, [...unused, returned]),
    );
    expect(groups[0]).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
    const reads = [dated, plain].map((each) => ({ ...each, cost: 0 }));
    const verdict = await verdictOf(store.decide([reads], noon));
    const counts = (verdict.groups[0] as GroupVerdict).tallies.map(({ count }) => count);
    expect(counts).toEqual([4, 3]);
  });

  it("refuses to adjust or reset counters if it needs the time of the Worker", async () => {
    const store = storeAt({ now: noon });
    const counters = [counter(), calendarCounter(day)];
    const failure = { message: expect.stringContaining("differ by a whole window") };
    await expect(store.adjust(counters, noon + 3 * DAY)).rejects.toMatchObject(failure);
    await expect(store.reset(counters, noon + 3 * DAY)).rejects.toMatchObject(failure);
    const [tally] = await store.adjust([{ ...(counters[0] as Demand), cost: 0 }], noon);
    expect(tally?.count).toBe(0);
  });
});

/** Creates a store with the clock `redis`, for a Redis whose clock shows a given time. */
function storeAt(clock: { readonly now: number }): Store {
  const { restUrl: url, restToken: token } = inject("redis");
  const options = { url, token, timeoutMs: 10_000 };
  const client = createUpstashClient(options);
  const withTime = (text: string) => `local server = redis
local redis = setmetatable({}, { __index = server })
redis.call = function(name, ...)
  if name == 'TIME' then
    return { '${Math.floor(clock.now / 1000)}', '${(clock.now % 1000) * 1000}' }
  end
  return server.call(name, ...)
end
${text}`;
  const atTime = {
    evalsha: () => Promise.reject(new errors.UpstashError("NOSCRIPT")),
    eval: (text, keys, args) => client.eval(withTime(text), keys, args),
  } satisfies UpstashClient;
  return createUpstashStore({ ...options, clock: "store", client: atTime });
}

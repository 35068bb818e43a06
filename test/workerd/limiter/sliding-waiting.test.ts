import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RuleInput } from "../../../src/config/index.ts";
import type { Decision, Limited } from "../../../src/limiter/decision.ts";
import { randomOf } from "../../suite/random.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { mostInAnyInterval } from "../../suite/sliding-suite.ts";
import { countedStore, isolatesOf, outcomes, pass, resultOf } from "./isolates.ts";

// Requests that wait under a rule with sliding: for quota that becomes free bit by bit, and never for more than the
// limit in any interval.

const NOW = 1_800_000_000_000;
const QUEUE = { limit: 5, window: "1s", sliding: true, wait: "3s" } as const;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The end of a request. Times are in milliseconds since the start of the test. */
interface End {
  readonly decision: Decision;
  readonly at: number;
  readonly cost: number;
}

/** Creates isolates that share a store, and notes the ends of their requests. */
function roomsOf(fields: Partial<RuleInput> = {}, roundTripsMs: readonly number[] = [0]) {
  const { store, decided } = countedStore();
  const { applied, newIsolate } = isolatesOf([{ ...QUEUE, ...fields }], store);
  const isolates = roundTripsMs.map((ms) => newIsolate(ms).limiter);
  const ends: End[] = [];
  const send = async ({ cost = 1, isolate = 0, client = new AbortController() } = {}) => {
    const rules = applied("client").map((each) => ({ ...each, cost }));
    const decision = (await isolates[isolate]?.decide(rules, client)) as Decision;
    ends.push({ decision, at: Date.now() - NOW, cost });
    return decision;
  };
  const of = (outcome: Decision["outcome"]) =>
    ends.filter(({ decision }) => decision.outcome === outcome);
  const passed = () => of("allowed");
  return {
    send,
    ends,
    decided,
    passed,
    waited: () => passed().filter(({ decision }) => decision.waitedMs !== undefined),
    inVain: () => of("limited").filter(({ decision }) => decision.waitedMs !== undefined),
    refused: () => of("limited").filter(({ decision }) => decision.waitedMs === undefined),
  };
}

const times = (ends: readonly End[]) => ends.map(({ at }) => at);

const retryOf = (result: { value?: Decision }) => (result.value as Limited).retryAfterMs;

/** Sends requests at random moments. @param meanMs the mean time between two requests */
async function sendRandomly(
  rooms: ReturnType<typeof roomsOf>,
  { requests = 600, meanMs = 50, isolates = 1, costs = [1] },
) {
  const below = randomOf(1);
  const random = () => below(1_000_000) / 1_000_000;
  for (let sent = 0; sent < requests; sent++) {
    await pass(Math.round(-Math.log(1 - random()) * meanMs));
    const cost = costs[below(costs.length)] as number;
    rooms.send({ isolate: below(isolates), cost });
  }
  const lastedMs = Date.now() - NOW;
  await pass(10_000);
  expect(rooms.ends.length).toBe(requests);
  expect(vi.getTimerCount()).toBe(0);
  return lastedMs;
}

const fields = [2, 10, 50] as const;

describe("20 requests at once under a limit of 5 in any second, which wait for up to 3 s", () => {
  it("pass in fives, as soon as the quota is free, and get 429 at once if there will be none", async () => {
    const rooms = roomsOf();
    await pass(330);
    for (let sent = 0; sent < 20; sent++) rooms.send();
    await pass(0);
    expect([rooms.passed().length, rooms.refused().length]).toEqual([5, 5]);
    await pass(10_000);
    // The sub-window of the first five begins at 300 ms. They count for a second after its end.
    const [first, second, third] = [330, 1400, 2500].map((at) => Array(5).fill(at));
    expect(times(rooms.passed())).toEqual([...(first ?? []), ...(second ?? []), ...(third ?? [])]);
    expect(mostInAnyInterval(rooms.passed(), 1000)).toBe(5);
    expect(rooms.inVain()).toEqual([]);
    expect(rooms.decided.calls).toBeLessThanOrEqual(20 + 10 + 5);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("would all pass in a fixed window, ten of them within a second", async () => {
    const rooms = roomsOf({ sliding: false });
    await pass(330);
    for (let sent = 0; sent < 20; sent++) rooms.send();
    await pass(10_000);
    expect(times(rooms.passed())).toEqual(
      [330, 1000, 2000, 3000].flatMap((at) => Array(5).fill(at)),
    );
    expect(mostInAnyInterval(rooms.passed(), 1000)).toBe(10);
  });
});

describe("a request that waits", () => {
  it("passes when the first charge counts no longer, whose end its 429 would have named", async () => {
    const rooms = roomsOf({ limit: 3 });
    for (const ms of [20, 240, 470]) {
      await pass(ms);
      expect((await rooms.send()).outcome).toBe("allowed");
    }
    // It is 730 ms, and the charges are in the sub-windows of 0, 200 and 700 ms.
    const checked = resultOf(rooms.send({ client: hungUp() }));
    await pass(0);
    expect(retryOf(checked)).toBe(370);
    rooms.send();
    rooms.send();
    rooms.send();
    await pass(3000);
    expect(times(rooms.passed()).slice(3)).toEqual([1100, 1300, 1800]);
  });

  it("needs no more than one decision when it arrives, and one when its quota is free", async () => {
    const rooms = roomsOf({ limit: 5, wait: "2s" });
    for (let sent = 0; sent < 5; sent++) {
      await pass(200);
      await rooms.send();
    }
    const before = rooms.decided.calls;
    for (let sent = 0; sent < 5; sent++) rooms.send();
    await pass(2000);
    expect(times(rooms.passed()).slice(5)).toEqual([1300, 1500, 1700, 1900, 2100]);
    expect(rooms.decided.calls - before).toBeLessThanOrEqual(10);
  });

  it("is not passed by cheaper requests again and again", async () => {
    const rooms = roomsOf({ limit: 8, wait: "3s" });
    for (let sent = 0; sent < 8; sent++) {
      await pass(120);
      await rooms.send();
    }
    rooms.send({ cost: 8 });
    for (let sent = 0; sent < 15; sent++) {
      await pass(100);
      rooms.send();
    }
    await pass(10_000);
    const costly = rooms.ends.find(({ cost }) => cost === 8);
    expect(costly?.decision.outcome).toBe("allowed");
    expect(mostInAnyInterval(rooms.passed(), 1000)).toBe(8);
  });

  it("leaves its turn to others when its client hangs up, so that no quota is lost", async () => {
    const rooms = roomsOf({ limit: 5, wait: "10s" });
    const clients = Array.from({ length: 45 }, () => new AbortController());
    for (const client of clients) rooms.send({ client });
    await pass(500);
    for (const [index, client] of clients.entries()) if (index % 2 === 0) client.abort();
    await pass(100);
    for (let sent = 0; sent < 30; sent++) rooms.send();
    await pass(12_000);
    // Of each 1.1 s, five pass: ten times from 0 s to 9.9 s at least.
    expect(rooms.passed().length).toBeGreaterThanOrEqual(45);
    expect(mostInAnyInterval(rooms.passed(), 1000)).toBe(5);
    const bySecond = Map.groupBy(rooms.passed(), ({ at }) => at);
    expect([...bySecond].slice(0, 9)).toEqual(
      Array.from({ length: 9 }, (_, index) => [
        index * 1100,
        expect.objectContaining({ length: 5 }),
      ]),
    );
    expect(vi.getTimerCount()).toBe(0);
  });

  it("passes several limits at once, of which some slide", async () => {
    for (const slides of [
      [true, true],
      [false, true],
      [true, false],
    ] as const) {
      vi.setSystemTime(NOW);
      const limits = [
        { limit: 2, window: "1s", sliding: slides[0] },
        { limit: 6, window: "10s", sliding: slides[1] },
      ] as const;
      const { store, decided } = countedStore();
      const { decide } = isolatesOf([{ limits, wait: "9s" }], store);
      const ends: [number, Decision][] = [];
      for (let sent = 0; sent < 20; sent++)
        decide().then((decision) => ends.push([Date.now() - NOW, decision]));
      await pass(25_000);
      const passed = ends.filter(([, { outcome }]) => outcome === "allowed");
      const charges = passed.map(([at]) => ({ at, cost: 1 }));
      if (slides[1]) expect(mostInAnyInterval(charges, 10_000)).toBe(6);
      if (slides[0]) expect(mostInAnyInterval(charges, 1000)).toBe(2);
      expect(ends.length).toBe(20);
      const inVain = ends.filter(
        ([, { outcome, waitedMs }]) => outcome === "limited" && waitedMs !== undefined,
      );
      expect(inVain).toEqual([]);
      expect(decided.calls).toBeLessThanOrEqual(3 * 20);
    }
  });
});

it.each([
  [true, true],
  [false, true],
  [true, false],
])(
  "at most one request in eight waits in vain for a limit that those before them use up, sliding: %s and %s",
  async (...slides) => {
    const limits = [
      { limit: 10, window: "1s", sliding: slides[0] },
      { limit: 40, window: "10s", sliding: slides[1] },
    ] as const;
    const { newIsolate } = isolatesOf([{ limits, wait: "3s" }]);
    const { decide } = newIsolate(5);
    const ends: Decision[] = [];
    for (let sent = 0; sent < 400; sent++) {
      decide().then((decision) => ends.push(decision));
      await pass(50);
    }
    await pass(4000);
    const slept = ends.filter(({ waitedMs }) => waitedMs !== undefined);
    const vain = slept.filter(({ outcome }) => outcome === "limited");
    expect(ends.length).toBe(400);
    expect(vain.length / slept.length).toBeLessThanOrEqual(0.125);
  },
);

describe("a request that gets 429 because others wait", () => {
  it("is told when its own cost would fit, also from memory", async () => {
    const rooms = roomsOf({ window: "10s", wait: "1s" });
    const at = async (ms: number) => pass(NOW + ms - Date.now());
    await at(500);
    await rooms.send();
    await at(4500);
    await rooms.send();
    await at(8500);
    await rooms.send({ cost: 3 });
    await at(10_200);
    const waiting = resultOf(rooms.send());
    await at(10_300);
    const denied = [1, 2, 3, 4].map((cost) =>
      resultOf(rooms.send({ cost, client: new AbortController() })),
    );
    await pass(0);
    expect(outcomes([waiting, ...denied])).toEqual(["waits", ...Array(4).fill("limited")]);
    expect(denied.map(retryOf)).toEqual([700, 4700, 8700, 8700]);
    await at(11_000);
    expect(outcomes([waiting])).toEqual(["allowed"]);
  });

  it("is told the right time after its last decision, when others have taken all quota", async () => {
    const rooms = roomsOf({ limit: 1, wait: "9s" }, [20, 0]);
    await rooms.send({ isolate: 1 });
    const waiting = resultOf(rooms.send());
    while (!waiting.value) {
      await pass(100);
      // The other isolate is nearer to the store.
      rooms.send({ isolate: 1, client: hungUp() });
    }
    expect(outcomes([waiting])).toEqual(["limited"]);
    const { at: endedAt } = rooms.ends.find(({ decision }) => decision === waiting.value) as End;
    const retryAt = endedAt + (retryOf(waiting) ?? 0);
    const check = async (ms: number) => {
      await pass(NOW + ms - Date.now());
      return (await rooms.send({ isolate: 1, client: hungUp() })).outcome;
    };
    expect(rooms.decided.calls).toBeLessThan(100);
    // The time is counted from the moment at which the decision was sent.
    expect(await check(retryAt - 21)).toBe("limited");
    expect(await check(retryAt)).toBe("allowed");
  });
});

describe("the requests of several isolates", () => {
  const WAITERS = fc.array(
    fc.record({
      isolate: fc.nat({ max: 1 }),
      passMs: fc.constantFrom(0, 0, 1, 130, 300, 999),
      staysMs: fc.constantFrom(0, 0, 1, 400, 1000, 2500),
      cost: fc.constantFrom(1, 1, 1, 2, 3),
    }),
    { minLength: 5, maxLength: 40 },
  );

  it.each(fields)(
    "never exceed the limit in any interval, whatever they cost and whoever hangs up: %i sub-windows",
    (sliding) =>
      fc.assert(
        fc.asyncProperty(WAITERS, async (waiters) => {
          vi.setSystemTime(NOW);
          const rooms = roomsOf({ limit: 3, sliding, wait: "5s" }, [0, 0]);
          for (const { isolate, passMs, staysMs, cost } of waiters) {
            await pass(passMs);
            const client = new AbortController();
            rooms.send({ isolate, cost, client });
            if (staysMs > 0) setTimeout(() => client.abort(), staysMs);
          }
          await pass(10_000);
          expect(mostInAnyInterval(rooms.passed(), 1000)).toBeLessThanOrEqual(3);
          expect(rooms.ends.length).toBe(waiters.length);
          expect(rooms.ends.every(({ decision }) => decision.outcome !== "undecided")).toBe(true);
          expect(vi.getTimerCount()).toBe(0);
        }),
        propertyRuns(200),
      ),
  );

  it.each(fields)(
    "wait in vain at most once in twenty if one isolate has all, with twice the requests that the limit allows: %i sub-windows",
    async (sliding) => {
      const rooms = roomsOf({ limit: 10, sliding, wait: "2s" }, [20]);
      const lastedMs = await sendRandomly(rooms, {});
      const vain = rooms.inVain().length;
      expect(vain / (vain + rooms.waited().length)).toBeLessThanOrEqual(0.05);
      expect(mostInAnyInterval(rooms.passed(), 1000)).toBeLessThanOrEqual(10);
      const even = (10 * sliding) / (sliding + 1);
      expect(rooms.passed().length).toBeGreaterThanOrEqual(0.95 * even * (lastedMs / 1000));
      expect(rooms.decided.calls).toBeLessThanOrEqual(1.5 * 600);
    },
  );

  it.each(fields)(
    "wait in vain at most twice in five if two isolates share the limit: %i sub-windows",
    async (sliding) => {
      const rooms = roomsOf({ limit: 10, sliding, wait: "2s" }, [20, 60]);
      const lastedMs = await sendRandomly(rooms, { isolates: 2 });
      const vain = rooms.inVain().length;
      expect(vain / (vain + rooms.waited().length)).toBeLessThanOrEqual(0.4);
      const even = (10 * sliding) / (sliding + 1);
      expect(rooms.passed().length).toBeGreaterThanOrEqual(0.95 * even * (lastedMs / 1000));
      expect(rooms.decided.calls).toBeLessThanOrEqual(1.5 * 600);
    },
  );

  it("wait in vain at most once in twenty if they cost differently", async () => {
    const rooms = roomsOf({ limit: 40, wait: "5s" }, [20]);
    await sendRandomly(rooms, { meanMs: 25, costs: [1, 1, 1, 8] });
    const vain = rooms.inVain().length;
    expect(vain / (vain + rooms.waited().length)).toBeLessThanOrEqual(0.05);
    const costly = rooms.passed().filter(({ cost }) => cost === 8);
    expect(costly.length).toBeGreaterThan(0.1 * rooms.passed().length);
  });
});

/** A client that has hung up, so that its request does not wait. */
function hungUp(): AbortController {
  const client = new AbortController();
  client.abort();
  return client;
}

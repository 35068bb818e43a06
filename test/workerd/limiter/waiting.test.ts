import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Rule, Window } from "../../../src/config/rule.ts";
import type { Allowed, Decision } from "../../../src/limiter/decision.ts";
import { MAX_WAITING, MAX_WAITING_FOR_ONE } from "../../../src/limiter/waiting-room.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { randomOf } from "../../suite/random.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { countedStore, distantStore, isolatesOf, outcomes, pass, resultOf } from "./isolates.ts";

const NOW = 1_800_000_000_000;
const QUEUE = { limit: 2, window: "1s", wait: "2s" } as const;
const SLOTS = { concurrent: 2, wait: "2s" } as const;

/** Requests: isolate, time since the last one, the time after which it hangs up (0 for never), and cost. */
const WAITERS = fc.array(
  fc.record({
    isolate: fc.nat({ max: 1 }),
    passMs: fc.constantFrom(0, 0, 1, 300, 999),
    staysMs: fc.constantFrom(0, 0, 1, 400, 1000, 2500),
    cost: fc.constantFrom(1, 1, 1, 2, 3),
  }),
  { minLength: 5, maxLength: 30 },
);

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A store in memory whose decisions fail while it is away. */
function failingStore() {
  const memory = createMemoryStore();
  const state = { isAway: false };
  const store: Store = {
    ...memory,
    decide: (groups, ...rest) =>
      state.isAway
        ? groups.map(() => Promise.reject(new StoreError("timeout", "away")))
        : memory.decide(groups, ...rest).map(async (answered) => {
            // Unlike a store in memory, this one is called over a network.
            const { fromMemory: _, ...answer } = await answered;
            return answer;
          }),
  };
  return { store, state };
}

const release = (result: { value?: Decision }) => (result.value as Allowed).slots?.release();

describe("a request over the limit of a rule with wait", () => {
  it("sleeps until a window begins in which it passes, in the order of arrival", async () => {
    const { decide } = isolatesOf([QUEUE]);
    await pass(300);
    const results = Array.from({ length: 7 }, () => resultOf(decide()));
    await pass(0);
    const waiting = ["waits", "waits", "waits", "waits"];
    expect(outcomes(results)).toEqual(["allowed", "allowed", ...waiting, "limited"]);
    await pass(699);
    expect(outcomes(results).slice(2, 6)).toEqual(waiting);
    await pass(1);
    expect(outcomes(results).slice(2, 6)).toEqual(["allowed", "allowed", "waits", "waits"]);
    await pass(1000);
    expect(results.slice(0, 6).map(({ value }) => (value as Allowed).waitedMs)).toEqual([
      undefined,
      undefined,
      700,
      700,
      1700,
      1700,
    ]);
  });

  it("gets 429 at once if no window begins within wait, and is charged nothing", async () => {
    const { decide, left } = isolatesOf([{ ...QUEUE, window: "1m" }]);
    await pass(57_999);
    const early = [decide(), decide(), decide()].map(resultOf);
    await pass(0);
    expect(outcomes(early)).toEqual(["allowed", "allowed", "limited"]);
    expect(early[2]?.value).toMatchObject({ retryAfterMs: 2001 });
    expect(await left()).toEqual([0]);
    await pass(1);
    const late = resultOf(decide());
    await pass(1999);
    expect(outcomes([late])).toEqual(["waits"]);
    await pass(1);
    expect(outcomes([late])).toEqual(["allowed"]);
  });

  it("comes after those that wait already, and does not ask before its turn", async () => {
    const { store, decided } = countedStore();
    const { decide } = isolatesOf([QUEUE], store);
    const first = Array.from({ length: 4 }, () => resultOf(decide()));
    await pass(500);
    expect(decided.calls).toBe(4);
    const newcomers = [resultOf(decide()), resultOf(decide()), resultOf(decide())];
    await pass(0);
    expect(decided.calls).toBe(4);
    expect(outcomes(newcomers)).toEqual(["waits", "waits", "limited"]);
    expect(newcomers[2]?.value).toMatchObject({ retryAfterMs: 500, fromMemory: true });
    await pass(500);
    expect(outcomes([...first.slice(2), ...newcomers])).toEqual([
      "allowed",
      "allowed",
      "waits",
      "waits",
      "limited",
    ]);
    await pass(1000);
    expect(outcomes(newcomers.slice(0, 2))).toEqual(["allowed", "allowed"]);
  });

  it("takes the turn of those that hang up, so that no quota is lost", async () => {
    const rule = { limit: 10, window: "1s", wait: "24s" } as const;
    const { store, decided } = countedStore();
    const { decide } = isolatesOf([rule], store);
    const passed: number[] = [];
    const clients = Array.from({ length: 450 }, () => new AbortController());
    const results = clients.map((client) => {
      const decision = decide("client", client);
      decision.then(({ outcome }) => outcome === "allowed" && passed.push(Date.now() - NOW));
      return resultOf(decision);
    });
    await pass(500);
    const inRoom = results.flatMap((each, at) => (each.value ? [] : [at]));
    expect(inRoom.length).toBe(240);
    // Every other one, and then the last ones.
    const leaving = inRoom.filter((_, index) => index % 2 === 0 || index > 180);
    for (const at of leaving) clients[at]?.abort();
    const stay = inRoom.length - leaving.length;
    await pass(0);
    const newcomers = Array.from({ length: leaving.length + 1 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(newcomers).filter((each) => each === "limited").length).toBe(1);
    await pass(24_000);
    expect(passed.length).toBe(10 + stay);
    const bySecond = Map.groupBy(passed, (at) => Math.floor(at / 1000));
    expect([...bySecond.values()].every(({ length }) => length === 10)).toBe(true);
    expect(outcomes(newcomers).filter((each) => each === "allowed").length).toBe(leaving.length);
    expect(decided.calls).toBeLessThan(2 * 450 + 300);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("never exceeds the limit in several isolates, whatever requests cost and whoever hangs up", () =>
    fc.assert(
      fc.asyncProperty(WAITERS, async (waiters) => {
        vi.setSystemTime(NOW);
        const rule = { limit: 3, window: "1s", wait: "5s" } as const;
        const { applied, newIsolate } = isolatesOf([rule]);
        const isolates = [newIsolate(), newIsolate()];
        const passed: { second: number; cost: number }[] = [];
        const decisions: Decision[] = [];
        for (const { isolate, passMs, staysMs, cost } of waiters) {
          await pass(passMs);
          const client = new AbortController();
          const rules = applied("client").map((each) => ({ ...each, cost }));
          isolates[isolate]?.limiter.decide(rules, { signal: client.signal }).then((decision) => {
            decisions.push(decision);
            if (decision.outcome !== "allowed") return;
            passed.push({ second: Math.floor(Date.now() / 1000), cost });
          });
          if (staysMs > 0) setTimeout(() => client.abort(), staysMs);
        }
        await pass(10_000);
        const seconds = Map.groupBy(passed, ({ second }) => second);
        for (const each of seconds.values()) {
          expect(each.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(3);
        }
        expect(decisions.length).toBe(waiters.length);
        expect(decisions.every(({ outcome }) => outcome !== "undecided")).toBe(true);
        expect(vi.getTimerCount()).toBe(0);
      }),
      propertyRuns(500),
    ));

  it("waits in vain at most once in twenty, if two isolates share the limit", async () => {
    const { newIsolate } = isolatesOf([{ limit: 10, window: "1s", wait: "2s" }]);
    const isolates = [newIsolate(20), newIsolate(60)];
    const ends: { outcome: string; waitedMs: number; second: number }[] = [];
    const below = randomOf(1);
    const random = () => below(1_000_000) / 1_000_000;
    let asked = 0;
    while (asked < 1200) {
      await pass(Math.round(-Math.log(1 - random()) * 50));
      asked += 1;
      isolates[random() < 0.5 ? 0 : 1]?.decide().then(({ outcome, waitedMs = 0 }) => {
        ends.push({ outcome, waitedMs, second: Math.floor(Date.now() / 1000) });
      });
    }
    await pass(3000);
    const passed = ends.filter(({ outcome }) => outcome === "allowed");
    const vain = ends.filter(({ outcome, waitedMs }) => outcome === "limited" && waitedMs > 0);
    const waited = passed.filter(({ waitedMs }) => waitedMs > 0);
    expect(vain.length / (vain.length + waited.length)).toBeLessThanOrEqual(0.05);
    const bySecond = [...Map.groupBy(passed, ({ second }) => second).values()];
    expect(Math.max(...bySecond.map(({ length }) => length))).toBe(10);
    expect(passed.length).toBeGreaterThanOrEqual(0.95 * 10 * bySecond.length);
  });

  it("passes as a whole with a cost above 1, in its order, while a cheaper request may use the rest of a window", async () => {
    const { applied, limiter } = isolatesOf([{ limit: 4, window: "1s", wait: "3s" }]);
    const decide = (own: number) =>
      resultOf(
        limiter.decide(
          applied("client").map((each) => ({ ...each, cost: own })),
          { signal: new AbortController().signal },
        ),
      );
    const results = [3, 3, 1, 3, 1].map(decide);
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "waits", "allowed", "waits", "waits"]);
    await pass(1000);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "allowed", "waits", "allowed"]);
    await pass(1000);
    expect(outcomes(results).at(3)).toBe("allowed");
  });

  it("passes all limits at once, and waits at most as long as the shortest wait of those that deny it", async () => {
    const limits = [
      { limit: 2, window: "1s" },
      { limit: 3, window: "10s" },
    ] as const;
    const { decide, left } = isolatesOf([{ limits, wait: "9s" }]);
    await pass(2000);
    const results = Array.from({ length: 5 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "waits", "waits", "waits"]);
    await pass(1000);
    expect(outcomes(results).slice(2)).toEqual(["allowed", "waits", "waits"]);
    await pass(7000);
    expect(outcomes(results).slice(3)).toEqual(["allowed", "allowed"]);
    expect(await left()).toEqual([0, 1]);
  });

  it.each([5, 20, 100])(
    "passes if it arrives at the start of a window, with a round trip of %i ms",
    async (roundTripMs) => {
      const { newIsolate } = isolatesOf([{ limit: 50, window: "1s", wait: "1s" }]);
      const { decide } = newIsolate(roundTripMs);
      await pass(10);
      const results = Array.from({ length: 100 }, () => resultOf(decide()));
      await pass(2900);
      expect(outcomes(results)).toEqual(Array(100).fill("allowed"));
    },
  );

  it("does not wait in vain for a limit that those before it use up, if its isolate knows the limit", async () => {
    const limits = [
      { limit: 10, window: "1s" },
      { limit: 40, window: "10s" },
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
    expect(vain.length / slept.length).toBeLessThanOrEqual(0.05);
  });

  it("is decided again under the live overrides of that moment", async () => {
    const { applied, limiter } = isolatesOf([{ limit: 1, window: "10s", wait: "60s" }]);
    let rules = applied("client");
    const { signal } = new AbortController();
    const decide = () => resultOf(limiter.decide(rules, { signal, current: () => rules }));
    const waiting = [decide(), decide(), decide()];
    await pass(100);
    expect(outcomes(waiting)).toEqual(["allowed", "waits", "waits"]);
    const limited = (limit: number) =>
      applied("client").map((each) => ({
        ...each,
        windows: each.windows.map((window) => ({ ...window, limit, capacity: limit })),
      }));
    rules = limited(100);
    const next = Array.from({ length: 50 }, decide);
    await pass(10_000);
    expect(outcomes([...waiting, ...next])).toEqual(Array(53).fill("allowed"));
    rules = limited(1);
    await pass(9000);
    const blocked = [decide(), decide()];
    await pass(100);
    expect(outcomes(blocked)).toEqual(["waits", "waits"]);
    rules = limited(0).map((each) => ({ ...each, blockedUntil: NOW + 3_600_000 }));
    await pass(900);
    expect(outcomes(blocked)).toEqual(["limited", "limited"]);
  });

  it("is decided at most five times, and then gets 429", async () => {
    const { store, decided } = countedStore();
    const { decide, newIsolate } = isolatesOf([{ limit: 1, window: "1s", wait: "9s" }], store);
    await decide();
    const waiting = resultOf(newIsolate(100).decide());
    for (let second = 0; second < 9; second++) {
      await pass(1000);
      // Another isolate takes each window's quota first.
      await decide("client", { signal: AbortSignal.abort() });
    }
    await pass(100);
    expect(decided.calls).toBe(1 + 9 + 5);
    expect(waiting.value?.outcome).toBe("limited");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not wait under a rule in shadow mode, after a hang-up, or in a program's call", async () => {
    const shadow = isolatesOf([{ ...QUEUE, mode: "shadow" }]);
    for (let count = 0; count < 3; count++) await shadow.decide();
    const { applied, decide, limiter } = isolatesOf([QUEUE]);
    await Promise.all([decide(), decide()]);
    expect(await limiter.decide(applied("client"))).toMatchObject({ outcome: "limited" });
    const gone = await decide("client", { signal: AbortSignal.abort() });
    expect(gone).toMatchObject({ outcome: "limited" });
    expect(gone.waitedMs).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("gets 429 at once if too many wait for the counter or in the isolate", async () => {
    const { decide } = isolatesOf([{ limit: 60, window: "1s", wait: "60s" }]);
    const own = Array.from({ length: 60 + MAX_WAITING_FOR_ONE + 1 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(own).filter((each) => each === "waits").length).toBe(MAX_WAITING_FOR_ONE);
    expect(outcomes(own).at(-1)).toBe("limited");
    const others = ["a", "b", "c"].map((identity) =>
      Array.from({ length: 60 + MAX_WAITING_FOR_ONE }, () => resultOf(decide(identity))),
    );
    await pass(0);
    const all = outcomes([...own, ...others.flat()]);
    expect(all.filter((each) => each === "waits").length).toBe(MAX_WAITING);
    const last = [...Array.from({ length: 60 }, () => decide("d")), decide("d")].map(resultOf);
    await pass(0);
    expect(outcomes(last).at(-1)).toBe("limited");
    await pass(60_000);
    expect(outcomes([...own, ...others.flat()])).not.toContain("waits");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is denied at once by another rule, with no wait, and counts once under rules in other modes", async () => {
    const { decide, left } = isolatesOf([
      { limit: 1, window: "1s", wait: "5s" },
      { limit: 2, window: "1h" },
      { limit: 9, window: "1h", mode: "mark" },
      { limit: 9, window: "1h", mode: "shadow" },
    ]);
    const results = [decide(), decide()].map(resultOf);
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "waits"]);
    await pass(1000);
    expect(outcomes(results)).toEqual(["allowed", "allowed"]);
    expect(await left()).toEqual([0, 0, 7, 7]);
    const denied = resultOf(decide());
    await pass(0);
    expect(outcomes([denied])).toEqual(["limited"]);
    expect(denied.value?.waitedMs).toBeUndefined();
  });

  it("is undecided if the store fails when its turn comes, and leaves the turn to the next one", async () => {
    const { store, state } = failingStore();
    const { decide } = isolatesOf([{ ...QUEUE, onError: "closed" }], store);
    const results = Array.from({ length: 4 }, () => resultOf(decide()));
    await pass(500);
    state.isAway = true;
    await pass(500);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "undecided", "undecided"]);
    state.isAway = false;
    expect((await decide()).outcome).toBe("allowed");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("waits no longer if the clock steps back", async () => {
    const { decide } = isolatesOf([{ limit: 1, window: "1m", wait: "2s" }]);
    await pass(59_000);
    await decide();
    const waiting = resultOf(decide());
    await pass(500);
    vi.setSystemTime(NOW + 10_000);
    await pass(1500);
    expect(outcomes([waiting])).toEqual(["limited"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("passes if operators reset the counter", async () => {
    const { decide, limiter, applied } = isolatesOf([QUEUE]);
    const results = Array.from({ length: 3 }, () => resultOf(decide()));
    await pass(500);
    await Promise.all(applied("client").map((each) => limiter.clients.reset(each)));
    await pass(500);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "allowed"]);
  });
});

describe("a request without a free slot under a rule with wait", () => {
  it("gets the slot of the first request of its isolate that ends, in the order of arrival", async () => {
    const { store, state } = countedStore();
    const { decide } = isolatesOf([SLOTS], store);
    const results = Array.from({ length: 5 }, () => resultOf(decide()));
    await pass(1);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "waits", "waits", "waits"]);
    const before = state.calls;
    release(results[1] as { value: Decision });
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "allowed", "waits", "waits"]);
    // One call returns the slot, and then one takes it.
    expect(state.calls - before).toBe(2);
    const newcomer = resultOf(decide());
    release(results[0] as { value: Decision });
    await pass(0);
    expect(outcomes([...results, newcomer]).slice(3)).toEqual(["allowed", "waits", "waits"]);
  });

  it("serves 250 requests on a fast origin, each by at most six decisions, with never more than the limit open", async () => {
    const { store, decided } = countedStore();
    const { decide } = isolatesOf([{ concurrent: 4, wait: "10s" }], distantStore(store, 20));
    let [open, highest, served] = [0, 0, 0];
    const ends = Array.from({ length: 250 }, async () => {
      const decision = await decide();
      if (decision.outcome !== "allowed") return;
      open += 1;
      highest = Math.max(highest, open);
      await new Promise((resolve) => setTimeout(resolve, 10));
      open -= 1;
      served += 1;
      decision.slots?.release();
    });
    await pass(12_000);
    await Promise.all(ends);
    expect([highest, served]).toEqual([4, 250]);
    expect(decided.calls).toBeLessThanOrEqual(2.5 * 250);
  });

  it("leaves no slot idle while requests of other isolates wait, and none of them waits in vain", async () => {
    const random = randomOf(7);
    vi.spyOn(Math, "random").mockImplementation(() => random(2 ** 20) / 2 ** 20);
    const { store, decided } = countedStore();
    const { newIsolate } = isolatesOf([{ concurrent: 4, wait: "60s" }], store);
    const isolates = Array.from({ length: 8 }, () => newIsolate(4));
    const startedAt = Date.now();
    let [open, highest, served, endedAt] = [0, 0, 0, 0];
    const ends = Array.from({ length: 400 }, async (_, at) => {
      const decision = await isolates[at % 8]?.decide();
      if (decision?.outcome !== "allowed") return;
      open += 1;
      highest = Math.max(highest, open);
      await new Promise((resolve) => setTimeout(resolve, 50));
      open -= 1;
      served += 1;
      endedAt = Date.now();
      decision.slots?.release();
    });
    await pass(61_000);
    await Promise.all(ends);
    expect([highest, served]).toEqual([4, 400]);
    // Without any pause between two requests of a slot, it would take five seconds.
    expect(endedAt - startedAt).toBeLessThan(5000 / 0.7);
    expect(decided.calls).toBeLessThanOrEqual(3 * 400);
  });

  it("neither exceeds the limit nor loses a slot when clients hang up", () =>
    fc.assert(
      fc.asyncProperty(WAITERS, async (waiters) => {
        vi.setSystemTime(NOW);
        const { decide, newIsolate } = isolatesOf([SLOTS]);
        const isolates = [decide, newIsolate().decide];
        let [open, highest] = [0, 0];
        for (const { isolate, passMs, staysMs } of waiters) {
          await pass(passMs);
          const client = new AbortController();
          isolates[isolate]?.("client", client).then(async (decision) => {
            if (decision.outcome !== "allowed") return;
            open += 1;
            highest = Math.max(highest, open);
            await new Promise((resolve) => setTimeout(resolve, 200));
            open -= 1;
            decision.slots?.release();
          });
          if (staysMs > 0) setTimeout(() => client.abort(), staysMs);
        }
        await pass(10_000);
        expect([open, highest <= 2]).toEqual([0, true]);
        expect(vi.getTimerCount()).toBe(0);
        expect((await Promise.all([decide(), decide()])).map(({ outcome }) => outcome)).toEqual([
          "allowed",
          "allowed",
        ]);
        vi.clearAllTimers();
      }),
      propertyRuns(500),
    ));

  it("gets slots that other isolates give back, by at most five decisions", async () => {
    const { store, decided } = countedStore();
    const { decide, newIsolate } = isolatesOf([SLOTS], store);
    const others = await Promise.all([decide(), decide()]);
    const isolate = newIsolate();
    const inVain = resultOf(isolate.decide());
    await pass(2000);
    expect(outcomes([inVain])).toEqual(["limited"]);
    expect(decided.calls - 2).toBeLessThanOrEqual(5);
    expect(inVain.value?.waitedMs).toBe(2000);
    const waiting = resultOf(isolate.decide());
    await pass(100);
    for (const each of others) (each as Allowed).slots?.release();
    await pass(1900);
    expect(outcomes([waiting])).toEqual(["allowed"]);
  });

  it("leaves the looks for slots of other isolates to the next one when it has used up its own", async () => {
    const { decide, newIsolate } = isolatesOf([{ concurrent: 1, wait: "60s" }]);
    const other = await decide();
    const isolate = newIsolate();
    const waiting = Array.from({ length: 20 }, () => resultOf(isolate.decide()));
    // By then, the first ones have asked five times.
    await pass(15_000);
    expect(outcomes(waiting)).toEqual(Array(20).fill("waits"));
    (other as Allowed).slots?.release();
    await pass(5000);
    expect(outcomes(waiting)).toContain("allowed");
  });

  it("passes if the slot came back while its denial was on its way", async () => {
    const memory = createMemoryStore();
    const store: Store = {
      ...memory,
      decide: (...args) =>
        memory.decide(...args).map(async (answer) => {
          const decided = await answer;
          if (!decided.admitted) await new Promise((resolve) => setTimeout(resolve, 50));
          return decided;
        }),
    };
    const { decide } = isolatesOf([{ concurrent: 1, wait: "60s" }], store);
    const first = await decide();
    const second = resultOf(decide());
    await pass(10);
    (first as Allowed).slots?.release();
    await pass(90);
    expect(outcomes([second])).toEqual(["allowed"]);
  });

  it("passes if the slot came back during its decision, whichever answer is faster", async () => {
    const memory = createMemoryStore();
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const store: Store = {
      ...memory,
      decide: (...args) => memory.decide(...args).map((answer) => pause(5).then(() => answer)),
      // The return arrives late.
      adjust: async (...args) => {
        await pause(40);
        return memory.adjust(...args);
      },
    };
    const { decide } = isolatesOf([{ concurrent: 1, wait: "60s" }], store);
    const first = resultOf(decide());
    await pass(5);
    const second = resultOf(decide());
    release(first as { value: Decision });
    await pass(100);
    expect(outcomes([second])).toEqual(["allowed"]);
  });

  it("asks once in a window although the answer of another window comes late", async () => {
    const { store, decided } = countedStore();
    const { decide, newIsolate } = isolatesOf([{ limit: 1, window: "1s", wait: "5s" }], store);
    const far = newIsolate(1600);
    await pass(900);
    await decide();
    const before = decided.calls;
    const waiting = resultOf(far.decide());
    for (let second = 0; second < 3; second++) {
      await pass(1000);
      await decide("client", { signal: AbortSignal.abort() });
    }
    expect(decided.calls - before - 3).toBeLessThanOrEqual(3);
    expect(outcomes([waiting])).toEqual(["waits"]);
    await pass(5000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is not delayed by a costlier request that may not wait", async () => {
    const { applied, limiter } = isolatesOf([{ limit: 1, window: "1s", capacity: 4, wait: "2s" }]);
    const { signal } = new AbortController();
    const decide = (cost: number) =>
      resultOf(
        limiter.decide(
          applied("client").map((each) => ({ ...each, cost })),
          { signal },
        ),
      );
    await pass(100);
    decide(4);
    await pass(0);
    const results = [decide(4), decide(1)];
    await pass(900);
    expect(outcomes(results)).toEqual(["limited", "allowed"]);
  });

  it("asks nothing for rules in other modes if it is denied at once because others wait", async () => {
    const { store, decided } = countedStore();
    const { decide } = isolatesOf(
      [
        { limit: 1, window: "10s", wait: "20s" },
        { limit: 9, window: "1h", mode: "shadow" },
        { limit: 9, window: "1h", mode: "mark" },
      ],
      store,
    );
    const first = Array.from({ length: 3 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(first)).toEqual(["allowed", "waits", "waits"]);
    const before = decided.calls;
    const denied = Array.from({ length: 500 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(denied)).toEqual(Array(500).fill("limited"));
    expect(decided.calls - before).toBeLessThanOrEqual(20);
    await pass(30_000);
  });

  it("leaves a returned slot to the next one if it hangs up at that moment", async () => {
    const { decide } = isolatesOf([{ concurrent: 1, wait: "60s" }]);
    const first = await decide();
    const client = new AbortController();
    const [gone, next] = [resultOf(decide("client", client)), resultOf(decide())];
    await pass(10);
    (first as Allowed).slots?.release();
    client.abort();
    await pass(60);
    expect(outcomes([gone, next])).toEqual(["limited", "allowed"]);
  });

  it("exceeds the limit neither after a reset nor after a flush", async () => {
    let memory = createMemoryStore();
    const store: Store = {
      decide: (...args) => memory.decide(...args),
      adjust: (...args) => memory.adjust(...args),
      reset: (...args) => memory.reset(...args),
    };
    const { applied, decide, limiter } = isolatesOf([SLOTS], store);
    const results = Array.from({ length: 8 }, () => resultOf(decide()));
    await pass(0);
    await Promise.all(applied("client").map((each) => limiter.clients.reset(each)));
    // The reset forgets the two open requests. From then on, the store counts two others.
    release(results[0] as { value: Decision });
    release(results[1] as { value: Decision });
    await pass(0);
    expect(outcomes(results).filter((each) => each === "allowed").length).toBe(4);
    memory = createMemoryStore();
    release(results[2] as { value: Decision });
    await pass(0);
    const open = outcomes(results).filter((each) => each === "allowed").length - 3;
    expect(open).toBeLessThanOrEqual(3);
    release(results[3] as { value: Decision });
    await pass(0);
    expect(outcomes(results).filter((each) => each === "allowed").length - 4).toBeLessThanOrEqual(
      2,
    );
  });

  it("takes no slot of a tier above its own tier's limit, and does not keep it from others", async () => {
    const { config, limiter } = isolatesOf([
      {
        concurrent: 1,
        wait: "5s",
        tiers: { by: "header:x-plan", limits: { big: { concurrent: 3 } } },
      },
    ] as never);
    const [rule] = config.rules;
    const tier = (windows: readonly Window[]) =>
      resultOf(
        limiter.decide([{ rule: rule as Rule, windows, identity: "client" }], {
          signal: new AbortController().signal,
        }),
      );
    const small = rule?.windows as readonly Window[];
    const big = rule?.tiers?.windows.get("big") as readonly Window[];
    const results = [tier(big), tier(big), tier(big), tier(small), tier(big)];
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "allowed", "waits", "waits"]);
    release(results[0] as { value: Decision });
    await pass(100);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "allowed", "waits", "allowed"]);
    for (const each of [1, 2, 4]) release(results[each] as { value: Decision });
    await pass(5000);
    expect(outcomes(results)).not.toContain("waits");
  });

  it("waits for quota without a slot, and takes both at once", async () => {
    const { decide, left } = isolatesOf([
      { limit: 1, window: "1s", wait: "3s" },
      { concurrent: 1, wait: "3s" },
    ]);
    const first = await decide();
    (first as Allowed).slots?.release();
    const waiting = resultOf(decide());
    await pass(500);
    expect(outcomes([waiting])).toEqual(["waits"]);
    expect((await left())[1]).toBe(1);
    await pass(500);
    expect(outcomes([waiting])).toEqual(["allowed"]);
    const next = resultOf(decide());
    await pass(1000);
    expect(outcomes([next])).toEqual(["waits"]);
    release(waiting as { value: Decision });
    await pass(60);
    expect(outcomes([next])).toEqual(["allowed"]);
  });

  it.each([
    [{ limit: 10, window: "1s", concurrent: 3, wait: "8s" }],
    [
      { limit: 10, window: "1s", wait: "8s" },
      { concurrent: 3, wait: "8s" },
    ],
  ] as const)(
    "uses up no decisions while windows are full or slots are taken in turn: %j",
    async (...rules) => {
      const { store, decided } = countedStore();
      const { decide } = isolatesOf(rules, distantStore(store, 20));
      let [open, highest] = [0, 0];
      const served: number[] = [];
      const ends = Array.from({ length: 50 }, async () => {
        const decision = await decide();
        if (decision.outcome !== "allowed") return;
        served.push(Math.floor(Date.now() / 1000));
        open += 1;
        highest = Math.max(highest, open);
        await new Promise((resolve) => setTimeout(resolve, 50));
        open -= 1;
        decision.slots?.release();
      });
      await pass(10_000);
      await Promise.all(ends);
      expect([highest, served.length]).toEqual([3, 50]);
      const bySecond = Map.groupBy(served, (second) => second);
      expect([...bySecond.values()].every(({ length }) => length <= 10)).toBe(true);
      expect(decided.calls).toBeLessThanOrEqual(4 * 50);
    },
  );

  it("is undecided if the store fails, and a slot that it should have returned is returned later", async () => {
    const { store, state } = failingStore();
    const { decide } = isolatesOf([{ concurrent: 1, wait: "5s", onError: "closed" }], store);
    const first = await decide();
    const waiting = resultOf(decide());
    await pass(0);
    state.isAway = true;
    (first as Allowed).slots?.release();
    await pass(0);
    expect(outcomes([waiting])).toEqual(["undecided"]);
    state.isAway = false;
    await pass(20_000);
    await decide("other");
    await pass(0);
    const next = resultOf(decide());
    await pass(0);
    expect(outcomes([next])).toEqual(["allowed"]);
  });
});

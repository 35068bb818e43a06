import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Allowed, Decision, Limited } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { MAX_WAITING, MAX_WAITING_FOR_ONE } from "../../../src/limiter/waiting-room.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { propertyRuns } from "../../suite/runs.ts";

const NOW = 1_800_000_000_000;
const QUEUE = { limit: 2, window: "1s", maxReserved: 3, wait: "2s" } as const;
const SLOTS = { concurrent: 2, wait: "2s" } as const;

/** Requests, each with its isolate, the time since the last one, and the time after which it hangs up; 0 for never. */
const WAITERS = fc.array(
  fc.record({
    isolate: fc.nat({ max: 1 }),
    passMs: fc.constantFrom(0, 0, 1, 300, 999),
    staysMs: fc.constantFrom(0, 0, 1, 400, 1000, 2500),
  }),
  { minLength: 5, maxLength: 30 },
);

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** A store in memory that counts its calls, and the decisions among them. */
function countedStore(store = createMemoryStore()) {
  const state = { calls: 0 };
  const decided = { calls: 0 };
  const counted: Store = {
    ...store,
    decide: (...args) => {
      state.calls += 1;
      decided.calls += 1;
      return store.decide(...args);
    },
    adjust: (...args) => {
      state.calls += 1;
      return store.adjust(...args);
    },
  };
  return { store: counted, state, decided };
}

/** A store in memory whose decisions fail while it is away. */
function failingStore() {
  const memory = createMemoryStore();
  const state = { isAway: false };
  const store: Store = {
    ...memory,
    decide: (groups, ...rest) =>
      state.isAway
        ? groups.map(() => Promise.reject(new StoreError("timeout", "away")))
        : memory.decide(groups, ...rest),
  };
  return { store, state };
}

/** Creates isolates that share a store. A request is of the client `client`, if no other one is given. */
function isolatesOf(rules: readonly Partial<RuleInput>[], store: Store = createMemoryStore()) {
  const config = defineConfig({
    clock: "edge",
    rules: rules.map((each, at) => ({ name: `rule${at}`, ...each })),
  });
  const newIsolate = () => {
    const limiter = new Limiter(config, store, { background: (task) => void task.catch(() => {}) });
    const applied = (identity: string) =>
      config.rules.map((rule) => ({ rule, windows: rule.windows, identity }));
    const decide = (identity = "client", { signal } = new AbortController()) =>
      limiter.decide(applied(identity), { signal });
    /** The quota that each counter has left. */
    const left = async (identity = "client") =>
      (await limiter.clients.read(applied(identity))).flatMap(({ quotas }) =>
        quotas.map(({ remaining }) => remaining),
      );
    return { limiter, decide, left };
  };
  return { ...newIsolate(), newIsolate };
}

/** Returns an object whose `value` is set when the decision is made. */
function resultOf(decided: Promise<Decision>): { value?: Decision } {
  const result: { value?: Decision } = {};
  decided.then((value) => {
    result.value = value;
  });
  return result;
}

const outcomes = (results: readonly { value?: Decision }[]) =>
  results.map(({ value }) => value?.outcome ?? "waits");

const release = (result: { value?: Decision }) => (result.value as Allowed).slots?.release();

describe("a request over the capacity of a rule with maxReserved and wait", () => {
  it("waits until the window begins whose quota it has reserved", async () => {
    const { decide } = isolatesOf([QUEUE]);
    await pass(300);
    const results = Array.from({ length: 6 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "allowed", "waits", "waits", "waits", "limited"]);
    await pass(699);
    expect(outcomes(results).slice(2, 5)).toEqual(["waits", "waits", "waits"]);
    await pass(1);
    expect(outcomes(results).slice(2, 5)).toEqual(["allowed", "allowed", "waits"]);
    await pass(1000);
    expect(results.slice(0, 5).map(({ value }) => (value as Allowed).waitedMs)).toEqual([
      undefined,
      undefined,
      700,
      700,
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

  it("gives its place to others if its client hangs up, but stays charged in other windows", async () => {
    const limits = [
      { limit: 1, window: "1s", maxReserved: 2 },
      { limit: 9, window: "1h" },
    ] as const;
    const { decide, left } = isolatesOf([
      { limits, wait: "5s" },
      { limit: 9, window: "1h" },
    ]);
    const client = new AbortController();
    const results = [decide(), decide("client", client)].map(resultOf);
    await pass(500);
    client.abort();
    await pass(0);
    expect(outcomes(results)).toEqual(["allowed", "limited"]);
    const next = resultOf(decide());
    await pass(500);
    expect(outcomes([next])).toEqual(["allowed"]);
    expect(await left()).toEqual([0, 6, 6]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("lets the last one take the place of one that hangs up, so that no window gets more than its quota", () =>
    fc.assert(
      fc.asyncProperty(WAITERS, async (waiters) => {
        vi.setSystemTime(NOW);
        const rule = { limit: 2, window: "1s", maxReserved: 12, wait: "8s" } as const;
        const { decide, newIsolate } = isolatesOf([rule]);
        const isolates = [decide, newIsolate().decide];
        const passed: number[] = [];
        for (const { isolate, passMs, staysMs } of waiters) {
          await pass(passMs);
          const client = new AbortController();
          isolates[isolate]?.("client", client).then(({ outcome }) => {
            if (outcome === "allowed") passed.push(Math.floor(Date.now() / 1000));
          });
          if (staysMs > 0) setTimeout(() => client.abort(), staysMs);
        }
        await pass(10_000);
        const counts = [...Map.groupBy(passed, (second) => second).values()].map(
          (each) => each.length,
        );
        expect(Math.max(0, ...counts)).toBeLessThanOrEqual(2);
        expect(vi.getTimerCount()).toBe(0);
      }),
      propertyRuns(2000),
    ));

  it("moves up if others hang up, and leaves the last quota to later requests", async () => {
    const { decide } = isolatesOf([{ limit: 1, window: "1s", maxReserved: 9, wait: "9s" }]);
    decide();
    const clients = [1, 2, 3].map(() => new AbortController());
    for (const client of clients) decide("client", client);
    const last = [resultOf(decide()), resultOf(decide())];
    await pass(500);
    for (const client of clients) client.abort();
    await pass(0);
    const next = resultOf(decide());
    await pass(500);
    expect(outcomes([...last, next])).toEqual(["waits", "allowed", "waits"]);
    await pass(1000);
    expect(outcomes([...last, next])).toEqual(["allowed", "allowed", "waits"]);
    await pass(1000);
    expect(outcomes([next])).toEqual(["allowed"]);
  });

  it("is denied if it would pass in another window than it has reserved under another limit", async () => {
    const limits = [
      { limit: 5, window: "1s", maxReserved: 9 },
      { limit: 7, window: "10s", maxReserved: 9 },
    ] as const;
    const { decide, left } = isolatesOf([{ limits, wait: "9s" }]);
    await pass(5000);
    const results = Array.from({ length: 9 }, () => resultOf(decide()));
    await pass(0);
    const expected = ["allowed", "allowed", "allowed", "allowed", "allowed", "waits", "waits"];
    expect(outcomes(results)).toEqual([...expected, "limited", "limited"]);
    await pass(1000);
    expect(outcomes(results).slice(5, 7)).toEqual(["allowed", "allowed"]);
    expect(await left()).toEqual([3, 0]);
  });

  it("gives back the reserve of the place that it got from another request", async () => {
    const count = { status: [401], reserve: true } as const;
    const rule = { limit: 2, window: "1s", maxReserved: 9, wait: "9s", count } as const;
    const { decide, limiter } = isolatesOf([rule]);
    decide();
    decide();
    const client = new AbortController();
    const gone = [decide("client", client), decide("client", client)];
    const late = Array.from({ length: 4 }, () => resultOf(decide()));
    await pass(100);
    client.abort();
    await Promise.all(gone);
    await pass(900);
    expect(outcomes(late)).toEqual(["waits", "waits", "allowed", "allowed"]);
    for (const each of late.slice(2)) await limiter.chargeResponse(each.value as Allowed, () => 0);
    const next = Array.from({ length: 2 }, () => resultOf(decide()));
    await pass(1000);
    expect(outcomes([...late.slice(0, 2), ...next])).toEqual([
      "allowed",
      "allowed",
      "waits",
      "waits",
    ]);
  });

  it("gets back the rest of its reserve, unless others wait", async () => {
    const cost = { reserve: 10, settle: "header:x-used" } as const;
    const rule = { limit: 10, window: "1s", maxReserved: 20, wait: "3s", cost } as const;
    const { decide, left, limiter } = isolatesOf([rule]);
    decide();
    const waiting = [resultOf(decide()), resultOf(decide())];
    await pass(1000);
    await limiter.chargeResponse(waiting[0]?.value as Allowed, () => 1);
    await pass(1000);
    expect(outcomes(waiting)).toEqual(["allowed", "allowed"]);
    expect(await left()).toEqual([0]);
    await limiter.chargeResponse(waiting[1]?.value as Allowed, () => 1);
    expect(await left()).toEqual([9]);
  });

  it("does not wait under a rule in shadow mode, after a hang-up, or in a program's call", async () => {
    const shadow = isolatesOf([{ ...QUEUE, mode: "shadow" }]);
    for (let request = 0; request < 4; request++) await shadow.decide();
    const { decide, limiter } = isolatesOf([QUEUE, { limit: 1, window: "1h", mode: "mark" }]);
    await decide();
    await decide();
    expect(
      (await decide("client", { signal: AbortSignal.abort() } as AbortController)).outcome,
    ).toBe("limited");
    const [rule] = defineConfig({ rules: [{ name: "rule0", ...QUEUE }] }).rules;
    const applied = { rule: rule as never, windows: rule?.windows as never, identity: "client" };
    expect((await limiter.decide([applied])).outcome).toBe("limited");
  });

  it("is denied without a charge if too many requests wait", async () => {
    const many = { limit: 1, window: "1s", maxReserved: 2000, wait: "60s" } as const;
    const { decide, left } = isolatesOf([many, { limit: 5000, window: "1h" }]);
    const clients = Array.from({ length: MAX_WAITING / 50 }, (_, at) => `client${at}`);
    for (const client of clients) {
      for (let request = 0; request < 51; request++) decide(client);
    }
    await pass(0);
    const before = await left("late");
    await decide("late");
    const late = await decide("late");
    expect(late).toMatchObject({ outcome: "limited", deniedBy: { says: "denied" } });
    expect(before).toEqual([1, 5000]);
    expect(await left("late")).toEqual([0, 4999]);
    await pass(1000);
    const next = resultOf(decide(clients[0]));
    await pass(0);
    expect(outcomes([next])).toEqual(["waits"]);
  });

  it("leaves room for other clients", async () => {
    const limits = [{ limit: 10, window: "1s", maxReserved: 2000 }] as const;
    const { decide, left } = isolatesOf([{ limits, wait: "60s" }]);
    const results = Array.from({ length: 10 + MAX_WAITING_FOR_ONE + 1 }, () => resultOf(decide()));
    await pass(0);
    expect(outcomes(results.slice(-2))).toEqual(["waits", "limited"]);
    await decide("other");
    const others = Array.from({ length: 10 }, () => resultOf(decide("other")));
    await pass(1000);
    expect(outcomes(others)).toEqual(others.map(() => "allowed"));
    expect(await left("other")).toEqual([9]);
  });

  it("holds no slot while it waits, and takes one afterwards", async () => {
    const { decide, left } = isolatesOf([QUEUE, { concurrent: 1, wait: "5s" }]);
    for (let request = 0; request < 2; request++) {
      ((await decide()) as Allowed).slots?.release();
      await pass(0);
    }
    const waiting = resultOf(decide());
    await pass(0);
    expect([outcomes([waiting]), await left()]).toEqual([["waits"], [0, 1]]);
    await pass(1000);
    expect([outcomes([waiting]), await left()]).toEqual([["allowed"], [1, 0]]);
    release(waiting);
    await pass(0);
    expect(await left()).toEqual([1, 1]);
  });

  it("waits for a slot afterwards, until the first window of its quota ends", async () => {
    const store = createMemoryStore();
    const rules = [
      { limit: 2, window: "2s", maxReserved: 2, wait: "4s" },
      { limit: 1, window: "5s", maxReserved: 2, wait: "6s" },
      { concurrent: 1, wait: "6s" },
    ] as const;
    const { decide } = isolatesOf(rules, store);
    await pass(4000);
    ((await decide()) as Allowed).slots?.release();
    await pass(100);
    const waiting = resultOf(decide());
    await pass(100);
    const other = isolatesOf([{ name: "rule2", concurrent: 1 }], store);
    expect((await other.decide()).outcome).toBe("allowed");
    // Its quota is of the windows from 4 to 6 s and from 5 to 10 s.
    await pass(1699);
    expect(outcomes([waiting])).toEqual(["waits"]);
    await pass(1);
    expect(outcomes([waiting])).toEqual(["limited"]);
  });

  it("gives no quota back that later windows have repaid", async () => {
    const store = createMemoryStore();
    const rules = [
      { name: "rule0", limit: 1, window: "1s", capacity: 20 },
      { name: "rule1", limit: 1, window: "4s", maxReserved: 4, wait: "4s" },
      { name: "rule2", concurrent: 1, wait: "6s" },
    ] as const;
    const [full, queue, slots] = rules.map((rule) => isolatesOf([rule], store).decide);
    const { decide, left } = isolatesOf(rules, store);
    await queue?.();
    const waiting = resultOf(decide());
    await pass(1);
    await slots?.();
    await pass(5200);
    for (let request = 0; request < 10; request++) await full?.();
    await pass(810);
    expect(outcomes([waiting])).toEqual(["limited"]);
    // The last window has granted one of the ten.
    expect((await left())[0]).toBe(11);
  });

  it("waits for a slot afterwards, until the window of its quota ends", async () => {
    const { decide, left } = isolatesOf([
      { ...QUEUE, wait: "9s" },
      { concurrent: 1, wait: "9s" },
    ]);
    for (let request = 0; request < 2; request++) {
      ((await decide()) as Allowed).slots?.release();
      await pass(0);
    }
    const waiting = [resultOf(decide()), resultOf(decide())];
    await pass(1000);
    expect(outcomes(waiting)).toEqual(["allowed", "waits"]);
    await pass(899);
    expect(outcomes(waiting)).toEqual(["allowed", "waits"]);
    await pass(1);
    expect(outcomes(waiting)).toEqual(["allowed", "limited"]);
    expect(await left()).toEqual([1, 0]);
  });

  it("is charged nothing if it gets no slot afterwards", async () => {
    const store = createMemoryStore();
    const { decide, left } = isolatesOf(
      [QUEUE, { concurrent: 1 }, { limit: 9, window: "1h" }],
      store,
    );
    for (let request = 0; request < 2; request++) {
      ((await decide()) as Allowed).slots?.release();
      await pass(0);
    }
    const waiting = resultOf(decide());
    await pass(500);
    const other = isolatesOf([{ name: "rule1", concurrent: 1 }], store);
    expect((await other.decide()).outcome).toBe("allowed");
    expect(await left()).toEqual([0, 0, 6]);
    await pass(500);
    expect(waiting.value).toMatchObject({ outcome: "limited", retryAfterMs: 1000, waitedMs: 1000 });
    await pass(0);
    expect(await left()).toEqual([2, 0, 7]);
  });
});

describe("a request that may wait for the quota of several limits", () => {
  const limits = [
    { limit: 1, window: "1s", maxReserved: 4 },
    { limit: 1, window: "4s", maxReserved: 4 },
  ] as const;

  it("is denied without a charge if they grant it in different windows, also beside a shadow rule", async () => {
    for (const others of [[], [{ mode: "shadow", limit: 9, window: "1m" }] as const]) {
      const { decide, left } = isolatesOf([{ limits, wait: "9s" }, ...others]);
      await decide();
      expect(await decide()).toMatchObject({
        outcome: "limited",
        retryAfterMs: 4000,
        quotas: [{ violated: true }, { violated: true }],
      });
      expect((await left()).slice(0, 2)).toEqual([0, 0]);
      await pass(4000);
      expect((await left()).slice(0, 2)).toEqual([1, 1]);
    }
  });
});

describe("a request that waits for quota under other rules", () => {
  const rules = [QUEUE, { mode: "mark", limit: 9, window: "1h", concurrent: 9 }] as const;

  it("counts once under rules with the mode mark, also if it is denied", async () => {
    const { decide, left } = isolatesOf(rules);
    await decide();
    await decide();
    const client = new AbortController();
    const waiting = [resultOf(decide()), resultOf(decide("client", client))];
    await pass(500);
    expect(await left()).toEqual([0, 5, 5]);
    client.abort();
    await pass(500);
    expect(outcomes(waiting)).toEqual(["allowed", "limited"]);
    expect(await left()).toEqual([1, 5, 6]);
  });

  it("is charged nothing if the store fails afterwards", async () => {
    const { store, state } = failingStore();
    const closed = { ...QUEUE, concurrent: 9, onError: "closed" } as const;
    const { decide, left } = isolatesOf([closed, { limit: 9, window: "1h" }], store);
    await decide();
    await decide();
    const waiting = resultOf(decide());
    await pass(500);
    state.isAway = true;
    await pass(500);
    expect(waiting.value).toMatchObject({ outcome: "undecided", open: false, waitedMs: 1000 });
    state.isAway = false;
    await pass(0);
    expect(await left()).toEqual([2, 7, 7]);
  });
});

describe("a request without a free slot under a rule with wait", () => {
  it("gets the slot of the first request of its isolate that ends, in the order of arrival", async () => {
    const { store, state } = countedStore();
    const { decide } = isolatesOf([SLOTS], store);
    const held = [decide(), decide()].map(resultOf);
    await pass(0);
    const waiting = [decide(), decide()].map(resultOf);
    await pass(0);
    const before = state.calls;
    release(held[1] as never);
    await pass(0);
    expect(outcomes(waiting)).toEqual(["allowed", "waits"]);
    // One call has renewed the slot.
    expect(state.calls).toBe(before + 1);
    release(held[0] as never);
    await pass(0);
    expect(outcomes(waiting)).toEqual(["allowed", "allowed"]);
    expect(waiting[1]?.value).toMatchObject({ waitedMs: 0 });
  });

  it("keeps a slot that is handed over, even while the store fails, if it needs nothing else", async () => {
    const { store, state } = failingStore();
    const { decide, left } = isolatesOf([{ ...SLOTS, concurrent: 1 }], store);
    const held = resultOf(decide());
    await pass(0);
    const waiting = [resultOf(decide()), resultOf(decide())];
    await pass(0);
    state.isAway = true;
    release(held);
    await pass(0);
    release(waiting[0] as never);
    await pass(0);
    expect(outcomes(waiting)).toEqual(["allowed", "allowed"]);
    state.isAway = false;
    expect(await left()).toEqual([0]);
    release(waiting[1] as never);
    await pass(0);
    expect(await left()).toEqual([1]);
  });

  it("neither exceeds the limit nor loses a slot when clients hang up", () =>
    fc.assert(
      fc.asyncProperty(WAITERS, async (waiters) => {
        vi.setSystemTime(NOW);
        const rule = { concurrent: 3, maxDuration: "2s", wait: "5s" } as const;
        const { decide, left, newIsolate } = isolatesOf([rule]);
        const isolates = [decide, newIsolate().decide];
        let open = 0;
        let highest = 0;
        for (const [at, { isolate, passMs, staysMs }] of waiters.entries()) {
          await pass(passMs);
          const client = new AbortController();
          isolates[isolate]?.("client", client).then(async (decision) => {
            if (decision.outcome !== "allowed") return;
            decision.slots?.keep();
            highest = Math.max(highest, ++open);
            await new Promise((resolve) => setTimeout(resolve, 100 * (at % 30)));
            open -= 1;
            decision.slots?.release();
          });
          if (staysMs > 0) setTimeout(() => client.abort(), staysMs);
        }
        await pass(60_000);
        expect(highest).toBeLessThanOrEqual(3);
        expect([open, await left()]).toEqual([0, [3]]);
        expect(vi.getTimerCount()).toBe(0);
      }),
      propertyRuns(1000),
    ));

  it("takes a slot that is handed over again, if it may have expired, or other quota is needed", async () => {
    const long = { concurrent: 1, maxDuration: "1m", wait: "60s" } as const;
    const cases = [
      { rules: [long], ageMs: 14_999, decisions: 0 },
      { rules: [long], ageMs: 15_000, decisions: 1 },
      { rules: [long, { limit: 9, window: "1h" }], ageMs: 100, decisions: 1 },
    ] as const;
    for (const { rules, ageMs, decisions } of cases) {
      const { store, decided } = countedStore();
      const { decide } = isolatesOf(rules, store);
      const held = resultOf(decide());
      await pass(ageMs - 10);
      const waiting = resultOf(decide());
      await pass(10);
      decided.calls = 0;
      release(held);
      await pass(0);
      expect([outcomes([waiting]), decided.calls]).toEqual([["allowed"], decisions]);
    }
  });

  it("passes with the slot that an object takes for it, and renews it until the object answers", async () => {
    const memory = createMemoryStore();
    const renewals: number[] = [];
    const store: Store = {
      ...memory,
      awaitSlot: () => new Promise((resolve) => setTimeout(resolve, 500, 500)),
      adjust: (counters, ...rest) => {
        if (counters.length > 0) renewals.push(Date.now() - NOW);
        const isAway = renewals.length < 3;
        return isAway
          ? Promise.reject(new StoreError("timeout", "away"))
          : memory.adjust(counters, ...rest);
      },
    };
    const { decide } = isolatesOf([SLOTS], store);
    await Promise.all([decide(), decide()]);
    const decided = vi.spyOn(store, "decide");
    const waiting = resultOf(decide());
    await pass(500);
    expect(waiting.value).toMatchObject({ outcome: "allowed", waitedMs: 500 });
    await pass(9000);
    // Twice the deadline of 1 s is the time for which an object takes the slot.
    expect(renewals).toEqual([500, 1000, 1500]);
    expect(decided).toHaveBeenCalledOnce();
  });

  it("is decided again if the answer of an object was late, because another request may have the slot", async () => {
    const memory = createMemoryStore();
    // The object has taken the slot at once.
    const awaitSlot = () => new Promise<number>((resolve) => setTimeout(resolve, 1500, 0));
    const { decide } = isolatesOf([SLOTS], { ...memory, awaitSlot });
    await Promise.all([decide(), decide()]);
    const waiting = resultOf(decide());
    await pass(1600);
    expect(outcomes([waiting])).toEqual(["waits"]);
  });

  it("is denied with the state of the windows at the end of its wait", async () => {
    const awaitSlot = (_counter: unknown, waitMs: number) =>
      new Promise<undefined>((resolve) => setTimeout(resolve, waitMs));
    const store = { ...createMemoryStore(), awaitSlot };
    const limits = [
      { limit: 9, window: "1s" },
      { limit: 99, window: "1m" },
    ] as const;
    const { decide } = isolatesOf([{ ...SLOTS, limits }], store);
    await Promise.all([decide(), decide()]);
    const waiting = resultOf(decide());
    await pass(2000);
    expect((waiting.value as Limited).quotas).toMatchObject([
      { policy: "rule0/1m", remaining: 97, resetMs: 58_000 },
      { policy: "rule0/concurrent", remaining: 0, violated: true },
    ]);
  });

  it("asks at most five times, also for the slots of other isolates, and then gets 429", async () => {
    const { store, state } = countedStore();
    const { decide, newIsolate } = isolatesOf([SLOTS], store);
    const held = [resultOf(decide()), resultOf(decide())];
    await pass(0);
    state.calls = 0;
    const other = newIsolate();
    const denied = resultOf(other.decide());
    await pass(1999);
    expect(outcomes([denied])).toEqual(["waits"]);
    await pass(1);
    expect([outcomes([denied]), state.calls]).toEqual([["limited"], 5]);
    expect((denied.value as Limited).waitedMs).toBe(2000);
    const admitted = resultOf(other.decide());
    await pass(100);
    release(held[0] as never);
    await pass(1900);
    expect(outcomes([admitted])).toEqual(["allowed"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("asks again at once if a slot is given back during its call", async () => {
    const store = createMemoryStore();
    const slow: Store = {
      ...store,
      decide: (groups, now) =>
        store.decide(groups, now).map(async (answer) => {
          const known = await answer;
          await new Promise((resolve) => setTimeout(resolve, 20));
          return known;
        }),
    };
    const { decide } = isolatesOf([{ ...SLOTS, wait: "60s" }], slow);
    const held = [resultOf(decide()), resultOf(decide())];
    await pass(20);
    const waiting = resultOf(decide());
    // The first retry comes within four seconds, and is in the store for 20 ms.
    let time = 0;
    const retried = vi.spyOn(store, "decide");
    while (retried.mock.calls.length === 0) {
      await pass(1);
      time += 1;
    }
    expect(time).toBeLessThanOrEqual(4000);
    release(held[0] as never);
    await pass(40);
    expect(outcomes([waiting])).toEqual(["allowed"]);
  });

  it("takes no slot of a tier above its own tier's limit", async () => {
    const limits = { small: { concurrent: 1 }, large: { concurrent: 3 } };
    const tiers = { by: "header:x-plan", limits } as const;
    const config = defineConfig({ rules: [{ name: "model", ...SLOTS, tiers }] });
    const [rule] = config.rules as [(typeof config.rules)[number]];
    const limiter = new Limiter(config, createMemoryStore(), { background: (task) => void task });
    const decide = (tier: string) => {
      const windows = rule.tiers?.windows.get(tier) ?? rule.windows;
      const { signal } = new AbortController();
      return resultOf(limiter.decide([{ rule, windows, identity: "client" }], { signal }));
    };
    const held = [decide("small"), decide("large"), decide("large")];
    await pass(0);
    const waiting = [decide("small"), decide("other")];
    await pass(0);
    release(held[0] as never);
    await pass(0);
    expect(outcomes([...held, ...waiting])).toEqual([
      ...["allowed", "allowed", "allowed"],
      ...["waits", "waits"],
    ]);
  });

  it("leaves slots that were handed over in vain to the next one", async () => {
    const config = defineConfig({
      clock: "edge",
      rules: [
        { name: "slot", concurrent: 1, wait: "60s" },
        { name: "other", concurrent: 1, wait: "60s" },
        { name: "quota", limit: 1, window: "1d" },
      ],
    });
    // Each request is decided by some of the rules. All have the same client.
    const cases = [
      { held: ["slot"], waiting: [["slot", "quota"], ["slot"]], last: ["limited", "allowed"] },
      {
        held: ["slot", "other"],
        waiting: [["slot"], ["slot", "other"], ["other"]],
        last: ["allowed", "waits", "allowed"],
      },
    ];
    for (const { held, waiting, last } of cases) {
      const limiter = new Limiter(config, createMemoryStore(), { background: (task) => void task });
      const decide = (names: readonly string[]) => {
        const rules = config.rules.filter(({ name }) => names.includes(name));
        const applied = rules.map((rule) => ({ rule, windows: rule.windows, identity: "client" }));
        return limiter.decide(applied, { signal: new AbortController().signal });
      };
      const first = resultOf(decide(held));
      await pass(0);
      const results = waiting.map((names) => resultOf(decide(names)));
      await pass(0);
      await decide(["quota"]);
      release(first);
      await pass(0);
      expect(outcomes(results)).toEqual(last);
    }
  });

  it("waits no longer if the clock steps back", async () => {
    for (const rule of [SLOTS, { ...QUEUE, maxReserved: 9 }]) {
      const { decide } = isolatesOf([rule]);
      await decide();
      await decide();
      const client = new AbortController();
      const gone = decide("client", client);
      const waiting = resultOf(decide());
      await pass(100);
      vi.setSystemTime(NOW - 600_000);
      client.abort();
      await gone;
      await pass(2000);
      expect(outcomes([waiting])).not.toEqual(["waits"]);
    }
  });

  it("leaves slots that it cannot use to others", async () => {
    const rules = [
      { name: "own", concurrent: 1, wait: "60s" },
      { name: "shared", concurrent: 2, wait: "60s" },
    ] as const;
    const config = defineConfig({ clock: "edge", rules });
    const background = (task: Promise<unknown>) => void task.catch(() => {});
    const limiter = new Limiter(config, createMemoryStore(), { background });
    const decide = (client: string) => {
      const applied = config.rules.map((rule, at) => ({
        rule,
        windows: rule.windows,
        identity: at === 0 ? client : "all",
      }));
      const { signal } = new AbortController();
      return resultOf(limiter.decide(applied, { signal }));
    };
    const held = [decide("a"), decide("b")];
    await pass(0);
    const [again, other] = [decide("a"), decide("c")];
    await pass(0);
    release(held[1] as never);
    await pass(0);
    expect(outcomes([again, other])).toEqual(["waits", "allowed"]);
  });

  it("takes a slot that was given back while its first denial was on its way", async () => {
    const store = createMemoryStore();
    const slow: Store = {
      ...store,
      decide: (groups, now, unused) =>
        store.decide(groups, now, unused).map(async (answer) => {
          const known = await answer;
          await new Promise((resolve) => setTimeout(resolve, 20));
          return known;
        }),
    };
    const { decide } = isolatesOf([{ ...SLOTS, concurrent: 1, wait: "60s" }], slow);
    const held = resultOf(decide());
    await pass(20);
    const waiting = resultOf(decide());
    await pass(10);
    release(held);
    await pass(30);
    expect(outcomes([waiting])).toEqual(["allowed"]);
  });

  it("wakes the next one if more slots are free", async () => {
    const { decide, newIsolate } = isolatesOf([SLOTS]);
    const held = [resultOf(decide()), resultOf(decide())];
    await pass(0);
    const other = newIsolate();
    const waiting = Array.from({ length: 3 }, () => resultOf(other.decide()));
    await pass(0);
    for (const each of held) release(each);
    await pass(1000);
    expect(outcomes(waiting).sort()).toEqual(["allowed", "allowed", "waits"]);
  });

  it("takes no slot from others if its client hangs up", async () => {
    const { decide, left } = isolatesOf([SLOTS]);
    const held = [resultOf(decide()), resultOf(decide())];
    await pass(0);
    const client = new AbortController();
    const gone = resultOf(decide("client", client));
    const next = resultOf(decide());
    await pass(0);
    client.abort();
    release(held[0] as never);
    await pass(0);
    expect(outcomes([gone, next])).toEqual(["limited", "allowed"]);
    release(held[1] as never);
    release(next);
    await pass(0);
    expect(await left()).toEqual([2]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("gets 429 at once if it lacks anything else too", async () => {
    const { decide } = isolatesOf([SLOTS, { limit: 2, window: "1h" }]);
    await decide();
    await decide();
    const denied = resultOf(decide());
    await pass(0);
    expect(outcomes([denied])).toEqual(["limited"]);
  });

  it("waits for one limit after the other, and counts once under other rules", async () => {
    const { decide, left } = isolatesOf([
      { ...SLOTS, concurrent: 1 },
      SLOTS,
      { mode: "mark", limit: 9, window: "1h" },
      { mode: "shadow", limit: 9, window: "1h" },
    ]);
    const held = resultOf(decide());
    await pass(0);
    const waiting = resultOf(decide());
    await pass(100);
    expect(await left()).toEqual([0, 1, 7, 7]);
    release(held);
    await pass(0);
    expect(outcomes([waiting])).toEqual(["allowed"]);
    expect(await left()).toEqual([0, 1, 7, 7]);
  });

  it("is undecided if the store fails while it waits", async () => {
    const { store, state } = failingStore();
    const { decide } = isolatesOf([{ ...SLOTS, onError: "closed" }], store);
    await decide();
    await decide();
    const waiting = resultOf(decide());
    await pass(0);
    state.isAway = true;
    await pass(2000);
    expect(waiting.value).toMatchObject({ outcome: "undecided", open: false });
  });
});

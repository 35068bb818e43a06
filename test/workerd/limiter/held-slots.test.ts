import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Demand } from "../../../src/engine/counter.ts";
import type { Allowed } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";

const MINUTE = 60_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

type RuleFields = Partial<RuleInput>;

/** Creates a limiter with a rule of two slots, and possibly with more rules. */
function limiterWith(store: Store, ...rules: RuleFields[]) {
  return limiterOf(store, [{}, ...rules]);
}

/** Creates a limiter, and functions to decide a request of its only client, and to count its open requests. */
function limiterOf(store: Store, rules: readonly RuleFields[]) {
  const config = defineConfig({
    rules: rules.map((each, at) => ({
      name: `rule${at}`,
      concurrent: 2,
      maxDuration: "1m",
      ...each,
    })),
  });
  const limiter = new Limiter(config, store, { background: () => {} });
  const applied = config.rules.map((rule) => ({ rule, windows: rule.windows, identity: "client" }));
  const open = async () => {
    const [state] = await limiter.clients.read(applied.slice(-1));
    const [quota] = state?.quotas.filter(({ concurrent }) => concurrent) ?? [];
    return (quota?.limit ?? 0) - (quota?.remaining ?? 0);
  };
  return { limiter, decide: () => limiter.decide(applied), open };
}

describe("the slots of a request", () => {
  it("are renewed while the request lasts, and expire if nobody renews them", async () => {
    const { decide, open } = limiterWith(createMemoryStore());
    const { slots } = (await decide()) as Allowed;
    await decide();
    slots?.keep();
    await vi.advanceTimersByTimeAsync(MINUTE - 1);
    expect(await open()).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(await open()).toBe(1);
    await vi.advanceTimersByTimeAsync(60 * MINUTE);
    expect(await open()).toBe(1);
    slots?.release();
    slots?.release();
    await vi.advanceTimersByTimeAsync(0);
    expect(await open()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("are given back if another rule denies the request", async () => {
    const { decide, open } = limiterWith(
      createMemoryStore(),
      { mode: "shadow" },
      { limit: 1, window: "1h" },
    );
    expect((await decide()).outcome).toBe("allowed");
    expect((await decide()).outcome).toBe("limited");
    await vi.advanceTimersByTimeAsync(0);
    expect(await open()).toBe(1);
  });

  it("of a rule in shadow mode are given back after a denial of another rule", async () => {
    const { decide, open } = limiterWith(
      createMemoryStore(),
      { name: "few", concurrent: undefined, maxDuration: undefined, limit: 1, window: "1h" },
      { mode: "shadow" },
    );
    expect((await decide()).outcome).toBe("allowed");
    expect((await decide()).outcome).toBe("limited");
    await vi.advanceTimersByTimeAsync(0);
    expect(await open()).toBe(1);
  });

  it("are given back if the store takes them only after the deadline", async () => {
    const memory = createMemoryStore();
    let isSlow = true;
    const slow: Store = {
      ...memory,
      decide: (groups, now) => {
        if (!isSlow) return memory.decide(groups, now);
        isSlow = false;
        setTimeout(() => memory.decide(groups, now), 1500);
        return groups.map(async () => {
          await new Promise((resolve) => setTimeout(resolve, 1000));
          throw new StoreError("timeout", "no answer in time");
        });
      },
    };
    const { decide, open } = limiterWith(slow);
    const decided = decide();
    await vi.advanceTimersByTimeAsync(1000);
    expect((await decided).outcome).toBe("undecided");
    await vi.advanceTimersByTimeAsync(500);
    expect(await open()).toBe(1);
    await vi.advanceTimersByTimeAsync(2000);
    expect(await open()).toBe(0);
  });

  it("are counted in this isolate if the store fails, and given back there", async () => {
    const failing: Store = {
      ...createMemoryStore(),
      decide: (groups: readonly (readonly Demand[])[]) =>
        groups.map(() => Promise.reject(new StoreError("unreachable", "no connection"))),
    };
    const { decide } = limiterWith(failing, { onError: "local", localShare: 1 });
    const taken = [await decide(), await decide()] as Allowed[];
    expect(taken.map(({ outcome }) => outcome)).toEqual(["allowed", "allowed"]);
    expect((await decide()).outcome).toBe("limited");
    taken[0]?.slots?.release();
    await vi.advanceTimersByTimeAsync(0);
    expect((await decide()).outcome).toBe("allowed");
  });

  it("cost no call after a denial", async () => {
    const store = createMemoryStore();
    const adjust = vi.spyOn(store, "adjust");
    const { decide } = limiterWith(store, { concurrent: 1 });
    await decide();
    expect((await decide()).outcome).toBe("limited");
    await vi.advanceTimersByTimeAsync(MINUTE / 4);
    expect(adjust).not.toHaveBeenCalled();
  });

  it("are returned after the next answer of the store, if their return has failed", async () => {
    const memory = createMemoryStore();
    let isAway = false;
    let isFromMemory = false;
    const adjust = vi.fn<Store["adjust"]>((...args) =>
      isAway
        ? Promise.reject(new StoreError("unreachable", "no connection"))
        : memory.adjust(...args),
    );
    const decide: Store["decide"] = (groups, now) =>
      memory
        .decide(groups, now)
        .map(async (answer) => ({ ...(await answer), fromMemory: isFromMemory }));
    const { decide: send, open } = limiterOf({ ...memory, decide, adjust }, [{ concurrent: 90 }]);
    const taken = (await Promise.all(Array.from({ length: 40 }, send))) as Allowed[];
    isAway = true;
    for (const { slots } of taken) slots?.release();
    await vi.advanceTimersByTimeAsync(0);
    // An answer from memory does not show that the store is back.
    isFromMemory = true;
    await send();
    isFromMemory = false;
    await send();
    await vi.advanceTimersByTimeAsync(0);
    isAway = false;
    expect(await open()).toBe(42);
    for (const left of [43 - 32, 44 - 40]) {
      await send();
      await vi.advanceTimersByTimeAsync(0);
      expect(await open()).toBe(left);
    }
  });

  it("are returned later too if nobody knows whether they were taken, after those that were", async () => {
    const memory = createMemoryStore();
    let isAway = false;
    const away = () => Promise.reject(new StoreError("timeout", "no answer in time"));
    const { decide, open } = limiterOf(
      {
        ...memory,
        // The store carries out decisions, but its answers are lost.
        decide: (groups, now) => {
          const answers = memory.decide(groups, now);
          return answers.map(async (each) =>
            isAway ? away() : { ...(await each), fromMemory: false },
          );
        },
        adjust: (...args) => (isAway ? away() : memory.adjust(...args)),
      },
      [{ concurrent: 900, maxDuration: "1h" }],
    );
    const taken = (await Promise.all(Array.from({ length: 12 }, decide))) as Allowed[];
    isAway = true;
    for (const { slots } of taken) slots?.release();
    await Promise.all(Array.from({ length: 36 }, decide));
    await vi.advanceTimersByTimeAsync(5000);
    isAway = false;
    expect(await open()).toBe(48);
    for (const left of [49 - 32, 17 - 16]) {
      const { slots } = (await decide()) as Allowed;
      await vi.advanceTimersByTimeAsync(0);
      expect(await open()).toBe(left);
      slots?.release();
    }
  });

  it("that were handed over are returned later if the taker is denied from memory", async () => {
    const memory = createMemoryStore();
    let isFromMemory = false;
    const returned: number[] = [];
    const store: Store = {
      ...memory,
      // A cache that denies the second rule loses the slots that it should return.
      decide: (groups, now) =>
        isFromMemory
          ? groups.map(async (group) => ({
              admitted: false,
              tallies: group.map((each) => ({ count: each.ceiling, resetMs: 1000, banMs: 0 })),
              now: Date.now(),
              fromMemory: true,
            }))
          : memory
              .decide(groups, now)
              .map(async (each) => ({ ...(await each), fromMemory: false })),
      adjust: (counters, now, unused = []) => {
        returned.push(unused.length);
        return memory.adjust(counters, now, unused);
      },
    };
    const rule = { concurrent: 1, wait: "20s" } as const;
    const { limiter, decide, open } = limiterOf(store, [rule]);
    const [held] = [(await decide()) as Allowed];
    const applied = held.verdicts.map(({ appliedRule }) => appliedRule);
    const quota = defineConfig({ rules: [{ name: "quota", limit: 9, window: "1h" }] }).rules[0];
    const other = {
      rule: quota,
      windows: quota?.windows,
      identity: "client",
    } as (typeof applied)[0];
    const waiting = limiter.decide([...applied, other], { signal: new AbortController().signal });
    await vi.advanceTimersByTimeAsync(0);
    isFromMemory = true;
    held.slots?.release();
    expect((await waiting).outcome).toBe("limited");
    isFromMemory = false;
    await limiter.decide([other]);
    await vi.advanceTimersByTimeAsync(0);
    expect(returned).toEqual([1]);
    expect(await open()).toBe(0);
  });

  it("are returned after a denial too if an object may still hold them", async () => {
    const memory = createMemoryStore();
    const adjust = vi.fn<Store["adjust"]>(memory.adjust);
    const decide: Store["decide"] = (groups) =>
      groups.map(async (group) => {
        const tallies = group.map(() => ({ count: 2, resetMs: 1000, banMs: 0 }));
        return { admitted: false, tallies, now: Date.now(), mayHold: true };
      });
    const { decide: send } = limiterWith({ ...memory, decide, adjust });
    expect((await send()).outcome).toBe("limited");
    await vi.advanceTimersByTimeAsync(5000);
    expect(adjust.mock.calls.map(([, , unused]) => unused?.length)).toEqual([1]);
  });

  it("are returned after a call that was sent and whose answer nobody awaits any more", async () => {
    const memory = createMemoryStore();
    let isOpen = true;
    const store: Store = {
      ...memory,
      decide: (groups, now) => {
        if (!isOpen) return memory.decide(groups, now);
        isOpen = false;
        setTimeout(() => memory.decide(groups, now), 2500);
        return groups.map(() => Promise.reject(new StoreError("abandoned", "no longer awaited")));
      },
    };
    const { decide, open } = limiterWith(store);
    expect((await decide()).outcome).toBe("undecided");
    await vi.advanceTimersByTimeAsync(2999);
    expect(await open()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await open()).toBe(0);
  });

  it("are returned by turns although those of one client can never be returned", async () => {
    const memory = createMemoryStore();
    let isAway = true;
    const adjust: Store["adjust"] = (counters, now, unused = []) =>
      isAway || unused.some(({ counter }) => counter.identity === "broken")
        ? Promise.reject(new StoreError("unreachable", "no connection"))
        : memory.adjust(counters, now, unused);
    const config = defineConfig({ rules: [{ name: "slots", concurrent: 20 }] });
    const decideAway: Store["decide"] = (...args) =>
      memory.decide(...args).map(async (answer) => ({ ...(await answer), fromMemory: false }));
    const store = { ...memory, decide: decideAway, adjust };
    const limiter = new Limiter(config, store, { background: () => {} });
    const [rule] = config.rules as [(typeof config.rules)[number]];
    const decide = async (identity: string) => {
      const { slots } = (await limiter.decide([
        { rule, windows: rule.windows, identity },
      ])) as Allowed;
      slots?.release();
      await vi.advanceTimersByTimeAsync(0);
    };
    for (let sent = 0; sent < 10; sent++) await decide("client");
    for (let sent = 0; sent < 10; sent++) await decide("broken");
    isAway = false;
    for (let sent = 0; sent < 4; sent++) await decide("other");
    const client = { rule, windows: rule.windows, identity: "client" };
    const [state] = await new Limiter(config, memory).clients.read([client]);
    expect(state?.quotas).toMatchObject([{ remaining: 20 }]);
  });

  it("are not remembered after a call that was never made", async () => {
    const failing: Store = {
      ...createMemoryStore(),
      decide: (groups) =>
        groups.map(() => Promise.reject(new StoreError("circuit-open", "not called"))),
    };
    const adjust = vi.spyOn(failing, "adjust");
    const { decide } = limiterWith(failing);
    await decide();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(adjust).not.toHaveBeenCalled();
  });

  it("of a rule in shadow mode are given back if the client is identified after the request", async () => {
    const store = createMemoryStore();
    const config = defineConfig({
      rules: [{ name: "late", mode: "shadow", concurrent: 1, key: "ip" }],
    });
    const limiter = new Limiter(config, store);
    const [rule] = config.rules as [(typeof config.rules)[number]];
    const own = { rule, windows: rule.windows, identity: "client" };
    const identified = Promise.withResolvers<(typeof own)[]>();
    const late = { rule, windows: [], identity: "", pendingRules: identified.promise };
    const { slots } = (await limiter.decide([late])) as Allowed;
    slots?.keep();
    slots?.release();
    identified.resolve([own]);
    await vi.advanceTimersByTimeAsync(0);
    const [state] = await limiter.clients.read([own]);
    expect(state?.quotas).toMatchObject([{ remaining: 1 }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("are not taken by checks and refunds", async () => {
    const { limiter, open, decide } = limiterWith(createMemoryStore(), { limit: 9, window: "1h" });
    const { verdicts } = (await decide()) as Allowed;
    const applied = verdicts.map(({ appliedRule }) => appliedRule);
    const checked = (await limiter.decide(applied, { checkOnly: true })) as Allowed;
    expect(checked.slots).toBeUndefined();
    await limiter.refund(applied.at(-1) as (typeof applied)[number], 1);
    expect(await open()).toBe(1);
  });
});

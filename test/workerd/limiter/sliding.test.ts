import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { costOfHead } from "../../../src/limiter/cost.ts";
import type { DecideOptions } from "../../../src/limiter/counters.ts";
import type { Allowed } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createStore } from "../../../src/stores/create-store.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { EVERY_STORE, withClock } from "../../suite/every-store.ts";

/** A full minute in the future, because a store may remove rows of the past. */
const NOW = Math.ceil(Date.now() / 3_600_000) * 3_600_000;
const MINUTE = { name: "api", limit: 5, window: "1m", sliding: true } as const;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const at = (ms: number) => vi.setSystemTime(NOW + ms);

const REMOTE = {
  "Durable Objects": () => ({ kind: "durable-object", namespace: env.COUNTERS }) as const,
  Redis: () => {
    const { restUrl, restToken } = inject("redis");
    return { kind: "upstash", url: restUrl, token: restToken } as const;
  },
};

/** Applies all rules to a client, whose cost and address for some rules may be given. */
function appliedTo(rules: readonly RuleInput[], cost?: number): AppliedRule[] {
  const config = defineConfig({ rules: rules as ConfigInput["rules"] });
  return config.rules.map((rule) => ({
    rule,
    windows: rule.windows,
    identity: "client",
    ...(cost !== undefined && { cost }),
  }));
}

describe.each(Object.keys(REMOTE) as (keyof typeof REMOTE)[])(
  "a denial that an isolate remembers, over %s",
  (name) => {
    /** Creates isolates that share a store, with the remembered denials of each, and counts the calls. */
    function isolates(rules: readonly RuleInput[] = [MINUTE]) {
      const calls = vi.fn();
      const meter = { recordStoreCall: calls };
      const prefix = crypto.randomUUID();
      const options = { clock: "edge", prefix, timeoutMs: 10_000, meter } as const;
      const isolate = () => {
        const limiter = new Limiter(options, createStore(REMOTE[name](), options));
        const decide = (cost: number) => limiter.decide(appliedTo(rules, cost));
        return { limiter, decide };
      };
      return { calls, first: isolate(), second: isolate() };
    }

    it("has the exact Retry-After of each cost, and ends when the first sub-window frees its quota", async () => {
      const { calls, first } = isolates();
      at(1000);
      expect((await first.decide(2)).outcome).toBe("allowed");
      at(31_000);
      expect((await first.decide(3)).outcome).toBe("allowed");
      for (const ms of [40_000, 58_000]) {
        at(ms);
        await first.decide(1);
        calls.mockClear();
        for (const [cost, freeAt] of [
          [1, 66_000],
          [2, 66_000],
          [3, 96_000],
          [5, 96_000],
        ] as const) {
          at(ms + 7999);
          expect(await first.decide(cost)).toMatchObject({
            outcome: "limited",
            retryAfterMs: freeAt - ms - 7999,
            quotas: [{ remaining: 0, resetMs: 66_000 - ms - 7999, resetAt: NOW + 66_000 }],
            fromMemory: true,
          });
        }
        expect(calls).not.toHaveBeenCalled();
      }
      at(66_000);
      expect((await first.decide(2)).outcome).toBe("allowed");
    });

    it("denies no request that fits into the quota left", async () => {
      const { first } = isolates();
      await first.decide(4);
      expect((await first.decide(2)).outcome).toBe("limited");
      expect((await first.decide(1)).outcome).toBe("allowed");
    });

    it("ends ten seconds after another isolate has given quota back, at the latest", async () => {
      const { calls, first, second } = isolates();
      await first.decide(5);
      at(20_000);
      expect((await first.decide(1)).outcome).toBe("limited");
      await second.limiter.refund(appliedTo([MINUTE])[0] as AppliedRule, 2);
      calls.mockClear();
      at(29_999);
      expect((await first.decide(1)).outcome).toBe("limited");
      expect(calls).not.toHaveBeenCalled();
      at(30_000);
      expect((await first.decide(2)).outcome).toBe("allowed");
    });

    it("counts in one counter with the isolates whose clocks differ, also after a step back", async () => {
      const { first, second } = isolates();
      at(59_000);
      await first.decide(3);
      at(53_500);
      expect((await second.decide(2)).outcome).toBe("allowed");
      // Both charges count until the first one counts no longer.
      expect(await second.decide(1)).toMatchObject({ outcome: "limited", retryAfterMs: 66_500 });
      at(119_999);
      expect((await second.decide(1)).outcome).toBe("limited");
      at(120_000);
      expect((await second.decide(5)).outcome).toBe("allowed");
    });
  },
);

describe.each(Object.keys(EVERY_STORE))("a limiter over %s", (name) => {
  /** Returns a limiter whose isolate is ahead of the clock of the store. */
  function aheadOf(storeTime: () => number, fields: Partial<RuleInput> = {}) {
    const prefix = crypto.randomUUID();
    const store = withClock(EVERY_STORE[name]?.(prefix) as Store, storeTime);
    const limiter = new Limiter({ clock: "store", prefix, timeoutMs: 10_000 }, store);
    const rules = [{ ...MINUTE, ...fields }];
    const decide = (cost: number, options?: DecideOptions) =>
      limiter.decide(appliedTo(rules, cost), options);
    return { limiter, decide, applied: appliedTo(rules) };
  }

  it("shows operators the counts of all sub-windows, and when quota is free by the clock of the store", async () => {
    let storeNow = NOW + 1000;
    const { limiter, decide, applied } = aheadOf(() => storeNow, { limit: 6 });
    await decide(2);
    storeNow = NOW + 40_000;
    await decide(4);
    at(43_000);
    expect(await limiter.clients.read(applied)).toMatchObject([
      {
        quotas: [{ remaining: 0, violated: true, resetMs: 26_000, retryAfterMs: 26_000 }],
        isActive: true,
        counters: [{ tally: { count: 6 } }],
      },
    ]);
    storeNow = NOW + 102_000;
    expect((await limiter.clients.read(applied))[0]).toMatchObject({ isActive: false });
  });

  it("charges a client nothing for a request that a limit of many clients denies", async () => {
    let storeNow = NOW + 1000;
    const prefix = crypto.randomUUID();
    const store = withClock(EVERY_STORE[name]?.(prefix) as Store, () => storeNow);
    const limiter = new Limiter({ clock: "store", prefix, timeoutMs: 10_000 }, store);
    const applied = (identity: string) => {
      const [own, all] = appliedTo([MINUTE, { ...MINUTE, name: "all", limit: 3 }]);
      return [
        { ...own, identity },
        { ...all, identity: "all", reach: 9 },
      ] as AppliedRule[];
    };
    const decide = (identity: string) => limiter.decide(applied(identity));
    for (const ms of [1000, 20_000, 40_000]) {
      storeNow = NOW + ms;
      expect((await decide("first")).outcome).toBe("allowed");
    }
    const denied = { outcome: "limited", retryAfterMs: 26_000 };
    for (const identity of ["first", "second", "first"]) {
      expect(await decide(identity)).toMatchObject(denied);
    }
    const [own] = applied("first");
    const [state] = await limiter.clients.read([own as AppliedRule]);
    expect(state?.quotas).toMatchObject([{ remaining: 2, resetMs: 26_000 }]);
    storeNow = NOW + 66_000;
    expect(await decide("second")).toMatchObject({ outcome: "allowed" });
    expect(await decide("first")).toMatchObject({ outcome: "limited", retryAfterMs: 18_000 });
  });

  it("tells after a settlement what is free, by the clock of the store", async () => {
    let storeNow = NOW;
    const cost = { reserve: 4, settle: "header:x-cost" } as const;
    const { limiter, applied } = aheadOf(() => storeNow, { limit: 10, cost });
    const first = (await limiter.decide(applied)) as Allowed;
    storeNow += 7000;
    const second = (await limiter.decide(applied)) as Allowed;
    const settled = async (decision: Allowed, used: number) => {
      const head = { status: 200, headers: new Headers({ "x-cost": `${used}` }) };
      return limiter.chargeResponse(decision, (each) => costOfHead(each, head));
    };
    expect(await settled(first, 1)).toMatchObject([{ remaining: 5, resetMs: 59_000 }]);
    expect(await settled(second, 13)).toMatchObject([
      { remaining: 0, resetMs: 59_000, retryAfterMs: 65_000 },
    ]);
  });
});

describe('an isolate that counts alone with onError: "local"', () => {
  const away = () => Promise.reject(new StoreError("unreachable", "away"));
  const STORE: Store = { decide: (groups) => groups.map(away), adjust: away, reset: away };

  it("limits every interval by its share, and settles in the sub-window of the charge", async () => {
    const config = defineConfig({ rules: [MINUTE] });
    const limiter = new Limiter(config, STORE);
    const rules = [{ ...MINUTE, limit: 20, onError: "local", localShare: 0.25 }] as const;
    const send = () => limiter.decide(appliedTo(rules));
    const outcomes = async (times: number) => {
      const all: string[] = [];
      for (let sent = 0; sent < times; sent++) all.push((await send()).outcome);
      return all.filter((outcome) => outcome === "allowed").length;
    };
    at(58_000);
    expect(await outcomes(6)).toBe(5);
    at(62_000);
    expect(await send()).toMatchObject({ outcome: "limited", retryAfterMs: 58_000 });
    at(120_000);
    expect(await outcomes(6)).toBe(5);
    const cost = { reserve: 5, settle: "header:x-cost" } as const;
    const settling = appliedTo([{ ...rules[0], name: "other", cost }]);
    at(200_000);
    const decision = (await limiter.decide(settling)) as Allowed;
    at(230_000);
    const head = { status: 200, headers: new Headers({ "x-cost": "1" }) };
    await limiter.chargeResponse(decision, (each) => costOfHead(each, head));
    const quota = async () => (await limiter.decide(settling)).outcome;
    expect(await quota()).toBe("limited");
    // The part of the reserve that was used counts until the end of the sub-window of its charge.
    at(198_000 + 66_000 - 1);
    expect(await quota()).toBe("limited");
    at(198_000 + 66_000);
    expect(await quota()).toBe("allowed");
  });
});

it("limits every client of a store in memory alone", async () => {
  const config = defineConfig({ rules: [MINUTE] });
  const limiter = new Limiter({ ...config, clock: "edge" }, createMemoryStore());
  const of = (identity: string) =>
    limiter.decide(appliedTo([MINUTE], 5).map((each) => ({ ...each, identity })));
  expect([await of("a"), await of("b"), await of("a")].map(({ outcome }) => outcome)).toEqual([
    "allowed",
    "allowed",
    "limited",
  ]);
});

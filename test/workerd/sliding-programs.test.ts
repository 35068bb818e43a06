import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { type LimitGranted, WeirService } from "../../src/index.ts";

// The calls of programs, and operators' changes, under a rule with sliding.

/** A full minute in the future, because a store may remove rows of the past. */
const NOW = Math.ceil(Date.now() / 3_600_000) * 3_600_000;
const ABOUT = { expiresIn: "2h", reason: "A sale" } as const;
const key = "acme";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const { restUrl, restToken } = inject("redis");
const STORES = {
  memory: {},
  upstash: { UPSTASH_REDIS_REST_URL: restUrl, UPSTASH_REDIS_REST_TOKEN: restToken },
  "durable-object": { COUNTERS: env.COUNTERS },
} as const;
type StoreName = keyof typeof STORES;

const at = (ms: number) => vi.setSystemTime(NOW + ms);

const MINUTE = { limit: 100, window: "1m", sliding: true } as const;

/** Returns a service with one rule, "calls", for programs. */
function serviceOf(
  store: StoreName,
  fields: object = MINUTE,
  prefix: string = crypto.randomUUID(),
) {
  const rule = { name: "calls", for: "programs", key: "custom:account", ...fields };
  const options = { store, clock: "edge", timeoutMs: 10_000, prefix };
  const config = defineConfig({ ...options, rules: [rule] } as unknown as ConfigInput);
  class Limits extends WeirService {
    readonly config = config;
  }
  const bindings = { ...STORES[store], WEIR_CONTROL: env.WEIR_CONTROL };
  const service = new Limits(createExecutionContext(), bindings as never);
  return {
    service,
    take: (cost?: number) => service.limit("calls", { key, ...(cost !== undefined && { cost }) }),
    left: async () => (await service.getValue("calls", { key })).map((each) => each.remaining),
    reservedBy: async () => {
      const { reserved } = (await service.limit("calls", { key })) as LimitGranted;
      return reserved as NonNullable<typeof reserved>;
    },
  };
}

describe.each(Object.keys(STORES) as StoreName[])("a program, over %s", (store) => {
  it("takes quota, and is told when the same call would pass", async () => {
    const { service, take, left } = serviceOf(store);
    at(1000);
    expect(await take(60)).toMatchObject({ ok: true, quotas: [{ remaining: 40 }] });
    at(20_000);
    expect(await take(30)).toMatchObject({
      ok: true,
      quotas: [{ remaining: 10, resetMs: 46_000 }],
    });
    expect(await take(20)).toMatchObject({ ok: false, retryAfterMs: 46_000 });
    expect(await take(71)).toMatchObject({ ok: false, retryAfterMs: 64_000 });
    const checked = await service.check("calls", { key, cost: 20 });
    expect(checked).toMatchObject({ ok: false, retryAfterMs: 46_000 });
    expect(await service.check("calls", { key, cost: 10 })).toMatchObject({ ok: true });
    expect(await left()).toEqual([10]);
    at(66_000);
    expect(await service.check("calls", { key, cost: 70 })).toMatchObject({ ok: true });
    expect(await left()).toEqual([70]);
  });

  it("gives quota back without a reserve, the last one first", async () => {
    const { take, left } = serviceOf(store);
    at(0);
    await take(60);
    at(30_000);
    await take(30);
    await take(-50);
    expect(await left()).toEqual([60]);
    at(66_000);
    expect(await left()).toEqual([100]);
    await take(-1);
    expect(await left()).toEqual([100]);
  });

  it("settles a reserve in the sub-window of its charge, and charges an excess now", async () => {
    const { service, left, reservedBy } = serviceOf(store, { ...MINUTE, cost: { reserve: 30 } });
    at(0);
    const first = await reservedBy();
    const second = await reservedBy();
    at(31_000);
    const third = await reservedBy();
    await service.settle("calls", { key, reserved: first, used: 10 });
    expect(await left()).toEqual([30]);
    await service.settle("calls", { key, reserved: second, used: 45 });
    expect(await left()).toEqual([15]);
    at(66_000);
    // The excess of 15 counts from 31 s on.
    expect(await left()).toEqual([55]);
    await service.settle("calls", { key, reserved: third, used: 0 });
    expect(await left()).toEqual([85]);
    at(96_000);
    expect(await left()).toEqual([100]);
    await reservedBy();
    const late = await service.settle("calls", { key, reserved: third, used: 0 });
    expect(late).toMatchObject({ ok: true, quotas: [{ remaining: 70 }] });
  });

  it.each([
    ["sliding that is added", { sliding: false }, { sliding: true }],
    ["sliding that is removed", { sliding: true }, { sliding: false }],
    ["other sub-windows", { sliding: true }, { sliding: 6 }],
  ])("gets nothing back for a reserve after a deploy: %s", async (_, before, after) => {
    const prefix = crypto.randomUUID();
    const rule = { ...MINUTE, cost: { reserve: 30 } };
    const old = serviceOf(store, { ...rule, ...before }, prefix);
    const reserved = await old.reservedBy();
    const { service, left, reservedBy } = serviceOf(store, { ...rule, ...after }, prefix);
    await reservedBy();
    expect(await service.settle("calls", { key, reserved, used: 0 })).toEqual({
      ok: true,
      quotas: [],
      reserveEnded: true,
    });
    expect(await left()).toEqual([70]);
    const excess = await service.settle("calls", { key, reserved, used: 50 });
    expect(excess).toMatchObject({ ok: true, reserveEnded: true });
    expect(await left()).toEqual([50]);
  });

  it("has all of its quota after a reset", async () => {
    const { service, take, left } = serviceOf(store);
    at(0);
    await take(60);
    at(50_000);
    await take(40);
    await service.reset("calls", { key });
    expect(await left()).toEqual([100]);
    expect(await take(100)).toMatchObject({ ok: true });
    at(113_999);
    expect(await left()).toEqual([0]);
    at(114_000);
    expect(await left()).toEqual([100]);
  });

  describe("under a live override", () => {
    afterEach(async () => {
      const { service } = serviceOf(store);
      for (const { client } of await service.overrides()) {
        const whose = client === undefined ? {} : { client };
        await service.removeOverride("calls", { ...whose, reason: "Clean up" });
      }
    });

    it("is counted as before, and has another limit at once", async () => {
      const { service, take, left } = serviceOf(store);
      at(58_000);
      await take(60);
      at(62_000);
      const limited = async (limit: number) => {
        const effect = { kind: "limits", limits: { calls: limit } } as const;
        await service.override("calls", { key, effect, ...ABOUT });
      };
      await limited(200);
      expect(await take(100)).toMatchObject({ ok: true, quotas: [{ limit: 200, remaining: 40 }] });
      await limited(20);
      expect(await take(10)).toMatchObject({ ok: false, retryAfterMs: 64_000 });
      await limited(120);
      expect(await take(20)).toMatchObject({ ok: false, retryAfterMs: 58_000 });
      at(120_000);
      expect(await left()).toEqual([20]);
      const effect = { kind: "factor", factor: 0.5 } as const;
      await service.override("calls", { key, effect, ...ABOUT });
      expect(await take(1)).toMatchObject({ ok: false, retryAfterMs: 6000 });
      await service.override("calls", { key, effect: { kind: "unlimited" }, ...ABOUT });
      expect(await take(1000)).toEqual({ ok: true, quotas: [] });
      expect(await left()).toEqual([0]);
    });

    it("is blocked until the block ends, and has its counts then", async () => {
      const { service, take, left } = serviceOf(store);
      at(1000);
      await take(60);
      const effect = { kind: "blocked" } as const;
      await service.override("calls", { key, effect, expiresIn: 20, reason: "Abuse" });
      expect(await take(1)).toMatchObject({
        ok: false,
        retryAfterMs: 20_000,
        quotas: [{ limit: 0, remaining: 0, violated: true }],
      });
      at(20_999);
      expect(await take(1)).toMatchObject({ ok: false, retryAfterMs: 1 });
      at(21_000);
      expect(await left()).toEqual([40]);
    });

    it("should retry after a window if it is blocked for longer", async () => {
      const { service, take } = serviceOf(store);
      const effect = { kind: "blocked" } as const;
      await service.override("calls", { key, effect, expiresIn: "2h", reason: "Abuse" });
      expect(await take(1)).toMatchObject({ ok: false, retryAfterMs: 66_000 });
    });

    it("settles a reserve that it took before", async () => {
      const { service, left, reservedBy } = serviceOf(store, { ...MINUTE, cost: { reserve: 40 } });
      for (const effect of [
        { kind: "limits", limits: { calls: 50 } },
        { kind: "factor", factor: 0 },
        { kind: "unlimited" },
        { kind: "blocked" },
      ] as const) {
        at(0);
        const reserved = await reservedBy();
        await service.override("calls", { key, effect, ...ABOUT });
        at(20_000);
        const settled = await service.settle("calls", { key, reserved, used: 10 });
        expect(settled).toMatchObject({ ok: true });
        expect(settled).not.toHaveProperty("reserveEnded");
        await service.removeOverride("calls", { key, reason: "Over" });
        expect(await left()).toEqual([90]);
        await service.reset("calls", { key });
      }
    });
  });
});

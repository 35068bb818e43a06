import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { type LimitGranted, WeirService } from "../../src/index.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 4, 4, 12, 30) });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const { restUrl, restToken } = inject("redis");
const STORES = {
  upstash: { UPSTASH_REDIS_REST_URL: restUrl, UPSTASH_REDIS_REST_TOKEN: restToken },
  "durable-object": { COUNTERS: env.COUNTERS },
} as const;

const HOURLY = { limit: 300, window: "1h" } as const;
const DAILY = { limit: 300, window: "1d" } as const;
const TIERS = {
  tiers: { by: "header:x-plan", limits: { daily: DAILY, large: { limit: 900, window: "1h" } } },
};
const key = "a";

describe.each(Object.keys(STORES))("settle over %s", (store) => {
  /** Deploys the rule "tokens" with other fields, and a second rule with the same key. */
  function deploy(prefix: string, fields: object = {}) {
    const rule = { for: "programs", key: "custom:account", cost: { reserve: 100 } };
    const rules = [
      { ...rule, name: "tokens", ...("limits" in fields ? {} : HOURLY), ...fields },
      { ...rule, name: "images", ...HOURLY },
    ];
    const config = defineConfig({
      store,
      clock: "edge",
      timeoutMs: 10_000,
      prefix,
      rules,
    } as unknown as ConfigInput);
    class Limits extends WeirService {
      readonly config = config;
    }
    return new Limits(createExecutionContext(), STORES[store as keyof typeof STORES] as never);
  }

  const newPrefix = () => crypto.randomUUID();

  async function reservedBy(service: WeirService, rule = "tokens", options: object = {}) {
    const { reserved } = (await service.limit(rule, { key, ...options })) as LimitGranted;
    return reserved as NonNullable<typeof reserved>;
  }

  async function remaining(service: WeirService, options: object = {}) {
    return (await service.getValue("tokens", { key, ...options })).map((quota) => quota.remaining);
  }

  it("refuses the reserve of another rule with the same key", async () => {
    const service = deploy(newPrefix());
    const reserved = await reservedBy(service, "images");
    await reservedBy(service);
    await expect(service.settle("tokens", { key, reserved, used: 0 })).rejects.toThrow(
      new TypeError(
        "The option reserved belongs to another rule. Pass the name of the rule of the call limit to settle.",
      ),
    );
    expect(await remaining(service)).toEqual([200]);
  });

  it("refuses the reserve of a tier with other counters", async () => {
    const service = deploy(newPrefix(), TIERS);
    const daily = { tier: "daily" };
    const reserved = await reservedBy(service, "tokens", daily);
    for (const options of [{}, { tier: "large" }]) {
      await expect(
        service.settle("tokens", { key, ...options, reserved, used: 900 }),
      ).rejects.toThrow(
        new TypeError(
          "The option reserved belongs to another tier. Pass the tier of the call limit to settle.",
        ),
      );
    }
    expect(await remaining(service)).toEqual([300]);
    const settled = await service.settle("tokens", { key, ...daily, reserved, used: 40 });
    expect(settled).toMatchObject({ ok: true, quotas: [{ remaining: 260 }] });
    expect(settled).not.toHaveProperty("reserveEnded");
  });

  it("accepts the reserve of a tier with the same counters", async () => {
    const service = deploy(newPrefix(), TIERS);
    const reserved = await reservedBy(service, "tokens", { tier: "large" });
    await service.settle("tokens", { key, reserved, used: 40 });
    expect(await remaining(service)).toEqual([260]);
  });

  it.each<[string, object, object]>([
    ["a window by the calendar", DAILY, { ...DAILY, window: "day" }],
    ["capacity that is added", {}, { capacity: 450 }],
    ["capacity that is removed", { capacity: 450 }, {}],
    ["shards that are added", {}, { shards: 2 }],
    ["shards that are removed", { shards: 2 }, {}],
    ["a window more", {}, { limits: [HOURLY, DAILY] }],
    ["a window less", { limits: [HOURLY, DAILY] }, {}],
    ["tiers that are added", {}, { ...DAILY, ...TIERS }],
  ])("gives nothing back after a deploy, and charges an excess: %s", async (_, before, after) => {
    // All calls draw the same shard.
    vi.spyOn(Math, "random").mockReturnValue(0.4);
    const prefix = newPrefix();
    const reserved = await reservedBy(deploy(prefix, before));
    const service = deploy(prefix, after);
    await service.limit("tokens", { key, cost: 50 });
    const left = await remaining(service);
    expect(await service.settle("tokens", { key, reserved, used: 0 })).toEqual({
      ok: true,
      quotas: [],
      reserveEnded: true,
    });
    expect(await remaining(service)).toEqual(left);
    const result = await service.settle("tokens", { key, reserved, used: 130 });
    expect(result).toMatchObject({ ok: true, reserveEnded: true });
    expect(await remaining(service)).toEqual(left.map((quota) => quota - 30));
  });

  it.each<[string, object, object]>([
    ["another limit", {}, { limit: 500 }],
    ["another capacity", { capacity: 450 }, { capacity: 480 }],
    ["more shards", { shards: 2 }, { shards: 4, limit: 400 }],
    ["tiers that are removed", TIERS, {}],
  ])("gives quota back after a deploy that keeps the counters: %s", async (_, before, after) => {
    const prefix = newPrefix();
    const service = deploy(prefix, after);
    const [full = 0] = await remaining(service);
    const reserved = await reservedBy(deploy(prefix, before));
    const result = await service.settle("tokens", { key, reserved, used: 0 });
    expect(result).not.toHaveProperty("reserveEnded");
    expect(await remaining(service)).toEqual([full]);
  });

  it("gives nothing back to a shard that a deploy has removed, and charges another one", async () => {
    const random = vi.spyOn(Math, "random").mockReturnValue(0.9);
    const prefix = newPrefix();
    const reserved = await reservedBy(deploy(prefix, { shards: 4, limit: 400 }));
    expect(reserved.shards).toEqual([3]);
    random.mockReturnValue(0.4);
    const service = deploy(prefix, { shards: 2, limit: 400 });
    const left = await remaining(service);
    const result = await service.settle("tokens", { key, reserved, used: 0 });
    expect(result).toEqual({ ok: true, quotas: [], reserveEnded: true });
    expect(await service.settle("tokens", { key, reserved, used: 130 })).toMatchObject({
      ok: true,
      reserveEnded: true,
    });
    expect(await remaining(service)).toEqual(left.map((quota) => quota - 30));
  });

  it("gives nothing back after the prefix has changed", async () => {
    const reserved = await reservedBy(deploy(newPrefix()));
    const service = deploy(newPrefix());
    await reservedBy(service);
    const result = await service.settle("tokens", { key, reserved, used: 0 });
    expect(result).toMatchObject({ ok: true, reserveEnded: true });
    expect(await remaining(service)).toEqual([200]);
  });
});

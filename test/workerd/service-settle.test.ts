import { createExecutionContext } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import { type LimitGranted, WeirService } from "../../src/index.ts";

afterEach(() => {
  vi.useRealTimers();
});

const TOKENS = {
  name: "tokens",
  limit: 1000,
  window: "1h",
  key: "header:x-account",
  cost: { reserve: 100, settle: "header:x-used", max: 800 },
} as const;

function serviceOf(rule: object = {}) {
  const rules = [
    { ...TOKENS, ...rule },
    { name: "plain", key: TOKENS.key, limit: 5, window: "1h" },
  ];
  const config = defineConfig({ store: "memory", rules } as unknown as ConfigInput);
  class Limits extends WeirService {
    readonly config = config;
  }
  return new Limits(createExecutionContext(), {});
}

const key = "a";

async function remaining(service: WeirService): Promise<number[]> {
  return (await service.getValue("tokens", { key })).map((quota) => quota.remaining);
}

describe("settle", () => {
  it.each([
    [60, 940],
    [100, 900],
    [700, 300],
    [1000, 0],
    [5000, 0],
  ])("replaces the reserve by the quota used: %i", async (used, left) => {
    const service = serviceOf();
    const { reserved } = (await service.limit("tokens", { key })) as LimitGranted;
    expect(reserved).toMatchObject({ cost: 100 });
    const result = await service.settle("tokens", { key, reserved: reserved as never, used });
    expect(result).toMatchObject({ ok: true, quotas: used === 100 ? [] : [{ remaining: left }] });
    expect(await remaining(service)).toEqual([left]);
  });

  it("settles the quota of a rule that limits open requests too", async () => {
    const service = serviceOf({ concurrent: 3 });
    const { reserved } = (await service.limit("tokens", { key })) as LimitGranted;
    const settled = await service.settle("tokens", { key, reserved: reserved as never, used: 60 });
    expect(settled).toEqual({ ok: true, quotas: [expect.objectContaining({ remaining: 940 })] });
  });

  it("settles a reserve of the caller's own size, and charges above the limit", async () => {
    const service = serviceOf();
    const options = { key, cost: 600 };
    const { reserved } = (await service.limit("tokens", options)) as LimitGranted;
    expect(await service.limit("tokens", options)).toMatchObject({ ok: false });
    await service.limit("tokens", { key, cost: 400 });
    await service.settle("tokens", { key, reserved: reserved as never, used: 800 });
    expect(await remaining(service)).toEqual([0]);
    await service.limit("tokens", { key, cost: -150 });
    expect(await remaining(service)).toEqual([0]);
    await service.limit("tokens", { key, cost: -100 });
    expect(await remaining(service)).toEqual([50]);
  });

  it.each([{ reserve: 100 }, { reserve: 100, settle: "header:x-used" }])(
    "settles a reserve of a rule for programs: %j",
    async (cost) => {
      const service = serviceOf({ for: "programs", cost });
      const { reserved } = (await service.limit("tokens", { key })) as LimitGranted;
      expect(reserved).toMatchObject({ cost: 100 });
      await service.settle("tokens", { key, reserved: reserved as never, used: 250 });
      expect(await remaining(service)).toEqual([750]);
    },
  );

  it("caps neither the caller's cost nor the quota used by the rule's maximum", async () => {
    const service = serviceOf();
    const { reserved } = (await service.limit("tokens", { key, cost: 900 })) as LimitGranted;
    await service.settle("tokens", { key, reserved: reserved as never, used: 950 });
    expect(await remaining(service)).toEqual([50]);
  });

  it("reports no reservation after a charge above the limit", async () => {
    const service = serviceOf();
    const { reserved } = (await service.limit("tokens", { key })) as LimitGranted;
    const result = await service.settle("tokens", { key, reserved: reserved as never, used: 5000 });
    expect(result).toMatchObject({ quotas: [{ remaining: 0, reservationDelayMs: 0 }] });
    const [quota] = await service.getValue("tokens", { key });
    expect(quota).toMatchObject({ remaining: 0, reservationDelayMs: 0 });
    expect(quota?.retryAfterMs).toBeGreaterThan(0);
  });

  it("gives nothing back in a later window", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    const service = serviceOf();
    const { reserved } = (await service.limit("tokens", { key })) as LimitGranted;
    vi.setSystemTime(Date.now() + 3_600_000);
    await service.limit("tokens", { key });
    await service.settle("tokens", { key, reserved: reserved as never, used: 0 });
    expect(await remaining(service)).toEqual([900]);
    await service.settle("tokens", { key, reserved: reserved as never, used: 150 });
    expect(await remaining(service)).toEqual([850]);
  });

  it.each([{ shards: 4 }, { mode: "shadow" }, { mode: "mark" }, { capacity: 1500 }])(
    "settles a rule with %j",
    async (fields) => {
      const service = serviceOf(fields);
      const before = await remaining(service);
      const reserves: LimitGranted[] = [];
      // Two reserves fit into each of the four shards, whichever the calls draw.
      for (let call = 0; call < 2; call++) {
        reserves.push((await service.limit("tokens", { key })) as LimitGranted);
      }
      for (const { reserved } of reserves) {
        await service.settle("tokens", { key, reserved: reserved as never, used: 0 });
      }
      expect(await remaining(service)).toEqual(before);
    },
  );

  it("takes no reserve for a check, a denial and a rule without a reserve", async () => {
    const service = serviceOf();
    for (const result of [
      await service.check("tokens", { key }),
      await service.limit("tokens", { key, cost: 2000 }),
      await service.limit("plain"),
    ]) {
      expect(result).not.toHaveProperty("reserved");
    }
  });

  it("throws an error for a wrong call", async () => {
    const service = serviceOf();
    const { reserved } = (await service.limit("tokens", { key })) as LimitGranted;
    const settle = (options: object, rule = "tokens") =>
      service.settle(rule, { key, reserved, used: 5, ...options } as never);
    for (const used of [-1, 1.5, Number.NaN, "5", 1e16]) {
      await expect(settle({ used })).rejects.toThrow(RangeError);
    }
    await expect(settle({ used: undefined })).rejects.toThrow("The option used is missing");
    for (const wrong of [
      undefined,
      null,
      100,
      {},
      { cost: 5, windows: [] },
      { cost: -1, windows: [1] },
    ]) {
      await expect(settle({ reserved: wrong })).rejects.toThrow("The option reserved must be");
    }
    for (const shards of [[], [0, 0], [-1], "0"]) {
      const wrong = { ...reserved, shards };
      await expect(settle({ reserved: wrong })).rejects.toThrow("The option reserved must be");
    }
    await expect(settle({ key: "b" })).rejects.toThrow("belongs to another client");
    await expect(settle({ key: "b" })).rejects.toThrow(TypeError);
    // An earlier version of Weir returned a reserve without some of the fields.
    const { cost, windows, client } = { ...reserved };
    expect(client).toMatch(/^[\w-]{4}$/);
    const older = { cost, windows };
    expect(await settle({ reserved: older, used: 100 })).toEqual({ ok: true, quotas: [] });
    await expect(settle({ more: 1 })).rejects.toThrow("There is no option");
    await expect(settle({}, "plain")).rejects.toThrow(
      'The rule "plain" has no cost with a reserve',
    );
    await expect(settle({}, "other")).rejects.toThrow(RangeError);
  });
});

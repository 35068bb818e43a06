import { type ConfigInput, defineConfig } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { definedRule, faultsOf, rule, withRule } from "./fixtures.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

describe("a window", () => {
  test.for<[string | number, number]>([
    ["1s", 1000],
    ["10s", 10_000],
    ["90s", 90_000],
    ["1m", MINUTE_MS],
    ["15m", 15 * MINUTE_MS],
    ["1h", 60 * MINUTE_MS],
    ["1d", DAY_MS],
    ["1w", 7 * DAY_MS],
    ["52w", 364 * DAY_MS],
    [1, 1000],
    [60, MINUTE_MS],
    [31_449_600, 364 * DAY_MS],
  ])("of %o lasts %i ms", ([window, windowMs]) => {
    expect(definedRule({ window }).windows).toMatchObject([{ windowMs }]);
  });
});

describe("concurrent", () => {
  const slots = { maxReserved: 0, offsetMs: 0, windowMs: 5 * MINUTE_MS, concurrent: true };
  const defined = (fields: object) =>
    defineConfig({ rules: [{ name: "api", ...fields }] } as ConfigInput).rules[0];

  test.for([1, 1000])("may be %i, and needs no window", (concurrent) => {
    expect(defined({ concurrent })?.windows).toEqual([
      { ...slots, policy: "api", limit: concurrent, capacity: concurrent },
    ]);
  });

  test.for<[object, object[]]>([
    [{ concurrent: 4, maxDuration: 1 }, [{ policy: "api", windowMs: 1000 }]],
    [{ concurrent: 4, maxDuration: "52w" }, [{ windowMs: 364 * DAY_MS }]],
    [
      { concurrent: 4, limit: 5, window: "1m", ban: "1h", cost: 2, count: { status: [401] } },
      [{ policy: "api/1m" }, { policy: "api/concurrent", limit: 4, windowMs: 5 * MINUTE_MS }],
    ],
    [
      {
        concurrent: 4,
        limits: [
          { limit: 5, window: "1m", capacity: 9 },
          { limit: 50, window: "month" },
        ],
      },
      [{ policy: "api/1m", capacity: 9 }, { policy: "api/month" }, { policy: "api/concurrent" }],
    ],
    [{ concurrent: 4, shards: 1, cost: 1, count: "request", start: "spread" }, [{ limit: 4 }]],
    [{ concurrent: 4, mode: "mark", tellOrigin: true }, [{ limit: 4 }]],
  ])("is the last of the limits of %o", ([fields, windows]) => {
    expect(defined(fields)?.windows).toMatchObject(windows);
  });

  test("of a tier is its own, or else that of its rule", () => {
    const pro = { limit: 50, window: "1m" };
    const limits = { pro, max: { ...pro, concurrent: 9 }, ultra: { concurrent: 20 } };
    const tiers = { by: "header:plan", limits };
    const windows = defined({ concurrent: 4, maxDuration: "1m", tiers })?.tiers?.windows;
    const own = (limit: number) => ({ limit, windowMs: MINUTE_MS, concurrent: true });
    expect(windows?.get("pro")).toMatchObject([{ policy: "api/1m" }, own(4)]);
    expect(windows?.get("max")).toMatchObject([{ policy: "api/1m" }, own(9)]);
    expect(windows?.get("ultra")).toMatchObject([{ policy: "api/concurrent", ...own(20) }]);
    const ofTier = defined({ ...pro, maxDuration: "1m", tiers });
    expect(ofTier?.windows).toMatchObject([{ policy: "api" }]);
    expect(ofTier?.tiers?.windows.get("max")).toHaveLength(2);
  });
});

describe("sliding", () => {
  test.for<[object, object]>([
    [{ sliding: true }, { sliding: 10 }],
    [{ sliding: 2 }, { sliding: 2 }],
    [{ sliding: 60 }, { sliding: 60 }],
    [{ sliding: 7, window: 7 }, { sliding: 7 }],
    [
      { sliding: true, window: "1s", limit: 0 },
      { sliding: 10, windowMs: 1000 },
    ],
    [{ sliding: true, window: "52w", limit: 999_999_999_999_999 }, { sliding: 10 }],
    [
      { sliding: true, start: "2026-01-01T00:00:07Z" },
      { sliding: 10, offsetMs: 7000 },
    ],
    [{ sliding: true, maxReserved: 0, shards: 1, lease: "auto" }, { sliding: 10 }],
    [{ sliding: true, ban: "1h", cost: 2, count: { status: [401] } }, { sliding: 10 }],
    [{ sliding: true, wait: "2s", mode: "enforce" }, { sliding: 10 }],
    [{ sliding: true, limit: { from: "custom:quota", max: 9, default: 0 } }, { sliding: 10 }],
  ])("of %o is a number of sub-windows", ([fields, window]) => {
    const custom = { limits: { quota: () => 5 } };
    const { rules } = defineConfig({ rules: [rule(fields)], custom } as ConfigInput);
    expect(rules[0]?.windows).toMatchObject([window]);
  });

  test("may differ between the limits of a rule and its tiers", () => {
    const second = { limit: 5, window: "1s" };
    const limits = [{ limit: 50, window: "1m", sliding: 6 }, second];
    const tiers = {
      by: "header:plan",
      limits: { a: { limits }, b: { ...second, sliding: true }, c: second },
    };
    const { windows, tiers: defined } = definedRule({ limits, tiers });
    const of = (each: readonly { sliding?: number }[] = []) => each.map(({ sliding }) => sliding);
    expect(of(windows)).toEqual([6, undefined]);
    expect([..."abc"].map((tier) => of(defined?.windows.get(tier)))).toEqual([
      [6, undefined],
      [10],
      [undefined],
    ]);
  });

  test.for([false, undefined])("of %o is as if it were absent", (sliding) => {
    const others = { capacity: 9, maxReserved: 2, start: "spread" };
    expect(definedRule({ ...others, sliding })).toEqual(definedRule(others));
    expect(definedRule({ window: "month", sliding })).toEqual(definedRule({ window: "month" }));
    expect(definedRule({ shards: 5, sliding })).toEqual(definedRule({ shards: 5 }));
  });
});

test.for([0, 1, 999_999_999_999_999])("a limit may be %i", (limit) => {
  expect(definedRule({ limit }).windows).toMatchObject([{ limit }]);
});

describe("a policy is named", () => {
  test.for<[string, (string | number)[], string[]]>([
    ["after its rule if the rule has one window", ["1m"], ["api"]],
    ["after rule and window if the rule has several", ["1m", "1h"], ["api/1m", "api/1h"]],
    [
      "with the largest unit that divides the window",
      [90, 120, 604_800],
      ["api/90s", "api/2m", "api/1w"],
    ],
    [
      "differently for each of 8 windows",
      [1, 2, 3, 4, 5, 6, 7, 8],
      [1, 2, 3, 4, 5, 6, 7, 8].map((seconds) => `api/${seconds}s`),
    ],
  ])("%s", ([, windows, policies]) => {
    const limits = windows.map((window) => ({ limit: 1, window }));
    const { windows: defined } = definedRule({ limits });
    expect(defined.map(({ policy }) => policy)).toEqual(policies);
  });
});

describe("a window's offset is its start modulo its length", () => {
  test.for<[string, string, number]>([
    ["epoch", "1d", 0],
    ["1970-01-01T00:00:00Z", "1d", 0],
    ["2026-01-01T09:00:00Z", "1d", 9 * 60 * MINUTE_MS],
    ["2026-01-01T09:00:00-08:00", "1d", 17 * 60 * MINUTE_MS],
    ["2026-01-01T09:00:00+05:30", "1d", 3.5 * 60 * MINUTE_MS],
    ["2026-01-01T00:00:00+08:00", "1d", 16 * 60 * MINUTE_MS],
    ["2026-01-01T09:00Z", "1d", 9 * 60 * MINUTE_MS],
    ["2026-01-01T09:00:30.250Z", "1m", 30_250],
    ["2026-01-01T09:00:00Z", "1m", 0],
    // The epoch was a Thursday, and 5 January 2026 was a Monday, so the offset is 4 days.
    ["2026-01-05T00:00:00Z", "1w", 4 * DAY_MS],
    ["1969-12-31T23:59:50Z", "1m", 50_000],
    ["1969-12-31T23:00:00Z", "1d", 23 * 60 * MINUTE_MS],
    ["1969-12-31T00:00:00Z", "1d", 0],
    ["spread", "1d", 0],
  ])("%s, %s → %i ms", ([start, window, offsetMs]) => {
    expect(definedRule({ start, window }).windows).toMatchObject([{ offsetMs }]);
  });

  test("and is computed for each window of a rule", () => {
    const limits = [
      { limit: 1, window: "1h" },
      { limit: 2, window: "1d" },
    ];
    const start = "2026-01-01T09:30:00Z";
    const { windows } = definedRule({ limits, start });
    expect(windows.map(({ offsetMs }) => offsetMs)).toEqual([30 * MINUTE_MS, 9.5 * 60 * MINUTE_MS]);
  });
});

test.for<[string, object, number]>([
  [
    "limit and window together with limits",
    { limits: [{ limit: 9, window: 60 }], limit: undefined },
    9,
  ],
  ["limits together with limit and window", { limit: 5, window: "1m", limits: undefined }, 5],
])("treats an undefined field as absent: %s", ([, fields, limit]) => {
  expect(faultsOf(withRule(fields))).toEqual([]);
  expect(definedRule(fields).windows).toMatchObject([{ limit }]);
});

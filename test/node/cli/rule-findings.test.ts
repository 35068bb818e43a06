import { describe, expect, test } from "vitest";
import { isProbablyMilliseconds, neverBinds } from "../../../cli/warnings/limits.ts";
import { configFindings } from "../../../cli/warnings/rules.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { Window } from "../../../src/config/rule.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { counter } from "../../suite/counters.ts";
import { verdictOf } from "../../suite/verdict.ts";

type Fields = Record<string, unknown>;

/** Returns the findings about these rules. Each rule gets a name, a path and a limit. */
function findings(...rules: Fields[]) {
  const named = rules.map((fields, index) => ({
    name: `r${index}`,
    match: { paths: ["/a"] },
    ...(fields.limits ? {} : { limit: 5, window: "1m" }),
    ...fields,
  }));
  const custom = {
    costs: { depth: () => 1 },
    settle: { usage: () => 1 },
    limits: { quota: () => 1 },
  };
  return configFindings(defineConfig({ rules: named, custom } as ConfigInput));
}

/** The fields of a rule that limits only open requests. */
const ONLY_OPEN = { limit: undefined, window: undefined, concurrent: 4 };

test("the path of a limit of 0 is that of the field, also beside concurrent", () => {
  expect(findings({ concurrent: 2, limit: 0, match: {} })[0]?.path).toBe("rules[0].limit");
});

test("a limit for open requests does not bound the number of requests", () => {
  const login = { match: { paths: ["/login"] }, onError: "closed" };
  const guessing = { ...login, key: "header:x-a" };
  expect(codes(guessing, { ...login, ...ONLY_OPEN })).toEqual(["no-address-limit"]);
  expect(codes({ ...login, onError: "open" }, { ...login, ...ONLY_OPEN })).toEqual(["fails-open"]);
  expect(codes({ key: "header:x-a" }, ONLY_OPEN)).toEqual(["made-up-keys"]);
  expect(codes({ ...ONLY_OPEN, key: "header:x-a" }, ONLY_OPEN)).toEqual([]);
  expect(codes({ ...ONLY_OPEN, key: "header:x-a" }, {})).toEqual([]);
});

const codes = (...rules: Fields[]) => findings(...rules).map(({ code }) => code);

describe("a limit that differs by client", () => {
  const source = { from: "custom:quota", max: 100, default: 10 };
  const limits = (...all: unknown[]) =>
    all.map((limit, index) => ({ limit, window: ["1m", "1h"][index] }));

  test("is not compared with other limits by its default", () => {
    expect(codes({ limits: limits(5, 9999) })).toEqual(["limit-never-binds"]);
    expect(codes({ limits: limits(5, { ...source, max: 99_999, default: 9999 }) })).toEqual([]);
    expect(codes({ limits: limits({ ...source, default: 5 }, 9999) })).toEqual([]);
  });

  test("does not count as a low limit of a rule with async if its default is low", () => {
    expect(codes({ async: true, limit: 5 })).toEqual(["async-exceeds-limit"]);
    expect(codes({ async: true, limit: { ...source, default: 5 } })).toEqual([]);
  });

  test("does not deny everybody if its default is 0", () => {
    expect(codes({ match: {}, limit: 0 })).toContain("denies-everybody");
    expect(codes({ match: {}, limit: { ...source, default: 0 } })).toEqual([]);
  });

  test("has requests that never fit only above its max", () => {
    expect(codes({ limit: source, cost: 100 })).toEqual([]);
    expect(codes({ limit: { ...source, default: 0 }, cost: 100 })).toEqual([]);
    const [above] = findings({ limit: source, cost: 101 });
    expect(above).toMatchObject({
      code: "cost-above-limit",
      message:
        'The rule "r0" denies every request, because a request costs 101, and custom:quota per 1m has at most 100',
    });
    const capacity = { ...source, max: 300, default: 30 };
    expect(codes({ limit: source, capacity, cost: 300 })).toEqual([]);
    expect(codes({ limit: source, capacity, cost: 301 })).toEqual(["cost-above-limit"]);
    expect(codes({ limit: source, capacity: 200, cost: 200 })).toEqual([]);
    expect(codes({ limit: source, capacity: 200, cost: 201 })).toEqual(["cost-above-limit"]);
  });

  test("is named by its source in a warning", () => {
    const tiers = { by: "country", limits: { DE: { limit: source, window: "1h" } } };
    const [warning] = findings({ tiers, wait: "2s" }).filter(({ code }) => code.startsWith("wait"));
    expect(warning?.message).toContain("For clients with the limit custom:quota per 1h");
  });
});

describe("a number of seconds", () => {
  test.each([
    // Seconds, minutes, hours and a day in milliseconds.
    1000, 2000, 5000, 10_000, 15_000, 30_000, 45_000, 60_000, 90_000, 120_000, 180_000, 300_000,
    600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000,
  ])("%i was probably meant in milliseconds", (value) => {
    expect(isProbablyMilliseconds(value)).toBe(true);
  });

  test.each([
    // From a second to five minutes.
    1,
    10,
    30,
    60,
    90,
    120,
    300,
    999,
    // 50 minutes, an hour, 5, 10, 15 and 20 hours, a day.
    3000,
    3600,
    6000,
    7200,
    18_000,
    36_000,
    54_000,
    72_000,
    86_400,
    // Days, weeks and months.
    172_800,
    432_000,
    604_800,
    864_000,
    1_209_600,
    2_592_000,
    5_184_000,
    7_776_000,
    31_449_600,
    // Unusual in both units.
    1001,
    7000 * 1001,
    61_000,
  ])("%i was meant in seconds, or is unusual in both units", (value) => {
    expect(isProbablyMilliseconds(value)).toBe(false);
  });

  test.each<[Fields, string[]]>([
    [{ window: 60_000 }, ["rules[0].window"]],
    [{ window: "60000s" }, []],
    [{ window: "1000m" }, []],
    [{ limits: [{ limit: 1, window: 60_000 }] }, ["rules[0].limits[0].window"]],
    [{ ban: 900_000 }, ["rules[0].ban"]],
    [{ ban: ["1m", 60_000, 3_600_000] }, ["rules[0].ban[1]", "rules[0].ban[2]"]],
    [
      { ban: { lengths: [60_000, 900_000], forgetAfter: 3_600_000 } },
      ["rules[0].ban.lengths[0]", "rules[0].ban.lengths[1]", "rules[0].ban.forgetAfter"],
    ],
    [{ retryJitter: 5000 }, ["rules[0].retryJitter"]],
    [
      { tiers: { by: "country", limits: { AT: { limit: 9, window: 60_000 } } } },
      ['rules[0].tiers.limits["(tier 1)"].window'],
    ],
  ])("is reported where it is written as a number: %j", (rule, paths) => {
    const found = findings(rule).filter(({ code }) => code === "milliseconds");
    expect(found.map(({ path }) => path)).toEqual(paths);
  });

  test("is reported with its length of time and with both notations", () => {
    expect(findings({ window: 60_000 })[0]).toMatchObject({
      message: "60000 is a number of seconds, so this time is 1000m",
      cure: 'If you mean 60000 milliseconds, write "1m". If you mean seconds, write "60000s"',
    });
  });
});

const tier = (pro: object) => ({ tiers: { by: "country", limits: { pro } } });
const limits = (...all: [limit: number, window: string, extras?: object][]) => ({
  limits: all.map(([limit, window, extras]) => ({ limit, window, ...extras })),
});

test.each<[string, Fields, string[]]>([
  ["the rule's length", { limit: 50, window: "1m" }, ["rules[0].tiers.limits"]],
  ["another length", { limit: 50, window: "1h" }, []],
  ["the rule's length, and slides", { limit: 50, window: "1m", sliding: 6 }, []],
])("a tier beside a sliding window has %s", (_, pro, expected) => {
  const tiers = { by: "country", limits: { AT: pro } };
  const found = findings({ limit: 5, window: "1m", sliding: true, tiers });
  const own = found.filter(({ code }) => code === "tier-without-sliding");
  // The name of a tier may be a secret.
  expect(own.map(({ path }) => path)).toEqual(expected);
});

describe("a limit beside another one", () => {
  test.each<[string, Fields, number]>([
    ["33 a minute admit 1980 an hour", limits([33, "1m"], [1980, "1h"]), 1],
    ["33 a minute admit more than 1979 an hour", limits([33, "1m"], [1979, "1h"]), 0],
    ["60 a minute admit more than 1000 an hour", limits([60, "1m"], [1000, "1h"]), 0],
    [
      "a saved quota admits more in one hour",
      limits([33, "1m", { capacity: 66 }], [2000, "1h"]),
      0,
    ],
    [
      "a small saved quota does not admit more in one hour",
      limits([33, "1m", { capacity: 53 }], [2000, "1h"]),
      1,
    ],
    [
      "reserved quota admits more in one hour",
      limits([33, "1m", { maxReserved: 21 }], [2000, "1h"]),
      0,
    ],
    [
      "a limit that can be reserved may deny",
      limits([33, "1m"], [2000, "1h", { maxReserved: 1 }]),
      0,
    ],
    ["50 an hour admit at most 50 a minute", limits([50, "1m"], [50, "1h"]), 1],
    ["50 an hour can admit more than 49 a minute", limits([49, "1m"], [50, "1h"]), 0],
    // Windows of 40 s begin at 0, 40 and 80 s. So each window of 60 s overlaps two of them.
    ["one window of 60 s overlaps two windows of 40 s", limits([10, "40s"], [20, "1m"]), 1],
    ["two windows of 40 s admit more than 19", limits([10, "40s"], [19, "1m"]), 0],
    [
      "with spread windows, one more window may overlap",
      { ...limits([33, "1m"], [1980, "1h"]), start: "spread" },
      0,
    ],
    [
      "with spread windows, 61 s may overlap three windows of 60 s",
      { ...limits([10, "1m"], [29, "61s"]), start: "spread" },
      0,
    ],
    [
      "with spread windows, 61 windows are enough",
      { ...limits([33, "1m"], [2013, "1h"]), start: "spread" },
      1,
    ],
    ["50 a month admit at most 50 on one day", limits([100, "day"], [50, "month"]), 1],
    ["a day can be in two months of another start", limits([99, "1d"], [50, "month"]), 0],
    ["33 a day admit more than 1000 in 31 days", limits([33, "day"], [1000, "month"]), 0],
    ["33 a day admit less than 1089 in a month", limits([33, "day"], [1353, "month"]), 1],
    ["a limit of 0 denies on purpose", limits([0, "1m"], [5, "1h"]), 0],
    [
      "an interval of 1.1 hours can be in 67 minutes",
      limits([10, "1m"], [669, "1h", { sliding: true }]),
      0,
    ],
    ["67 minutes admit at most 670", limits([10, "1m"], [670, "1h", { sliding: true }]), 1],
    [
      "a sliding minute admits at most 600 in an hour",
      limits([10, "1m", { sliding: true }], [600, "1h"]),
      1,
    ],
    [
      "the largest limits are compared exactly",
      limits([999_999_999_999_998, "1s"], [999_999_999_999_999, "1d"]),
      0,
    ],
  ])("%s: %j", (_, rule, count) => {
    expect(codes(rule).filter((code) => code === "limit-never-binds")).toHaveLength(count);
  });

  test("is compared within each tier", () => {
    const tiers = { by: "country", limits: { AT: limits([33, "1m"], [2000, "1h"]) } };
    expect(findings({ tiers })).toMatchObject([
      { code: "limit-never-binds", path: "rules[0].tiers.limits" },
    ]);
  });
});

/**
 * Returns the largest number of requests that a limit admits in one window of another length. A
 * client that was idle sends requests without a pause from the start of such a window to its end.
 */
async function mostAdmitted(limit: Window, windowMs: number): Promise<number> {
  const counts: number[] = [];
  for (let start = 0; start < limit.windowMs * windowMs; start += windowMs) {
    const store = createMemoryStore();
    const admitting = counter({
      limit: limit.limit,
      windowMs: limit.windowMs,
      ceiling: limit.capacity,
      rollsOver: limit.capacity > limit.limit,
    });
    let count = 0;
    for (let now = start; now < start + windowMs; now++) {
      while ((await verdictOf(store.decide([[admitting]], now))).groups[0]?.admitted) count++;
    }
    counts.push(count);
  }
  return Math.max(...counts);
}

describe("the calculation of the limits that deny nothing", () => {
  const lengths = [1, 2, 3, 4, 6, 7];
  const windowOf = (limit: number, windowMs: number, capacity: number): Window => ({
    policy: "p",
    maxReserved: 0,
    offsetMs: 0,
    limit,
    windowMs,
    capacity,
  });

  test.each(lengths.flatMap((one) => lengths.map((other) => [one, other] as const)))(
    "agrees with the algorithm for windows of %i and %i ms",
    async (length, idleLength) => {
      for (const [limit, capacity] of [
        [2, 2],
        [3, 7],
      ] as const) {
        const other = windowOf(limit, length, capacity);
        const most = await mostAdmitted(other, idleLength);
        const idle = (quota: number) => windowOf(quota, idleLength, quota);
        expect(neverBinds(idle(most), other, false)).toBe(true);
        expect(neverBinds(idle(most - 1), other, false)).toBe(false);
      }
    },
  );
});

describe("a cost", () => {
  const PROGRAMS = { for: "programs", key: "custom:account", match: undefined };

  test.each<[Fields, string[]]>([
    [{ cost: 6 }, ["cost-above-limit"]],
    [{ cost: 5 }, []],
    [{ cost: 6, capacity: 6 }, []],
    [{ cost: 7, maxReserved: 2 }, ["cost-above-limit"]],
    [{ cost: 7, maxReserved: 2, ...PROGRAMS }, []],
    [{ cost: 8, maxReserved: 2, ...PROGRAMS }, ["cost-above-limit"]],
    [{ cost: 3, shards: 2 }, []],
    [{ cost: 4, shards: 2 }, ["cost-above-limit"]],
    [{ cost: 6, ...limits([100, "1m"], [5, "1h"]) }, ["limit-never-binds", "cost-above-limit"]],
    [{ cost: 6, limit: 0 }, []],
    [{ cost: 6, count: { status: [200] } }, []],
    [{ cost: "header:x-cost", count: { status: [200] } }, []],
    [{ cost: 6, count: { status: [200], reserve: true } }, ["cost-above-limit"]],
    [{ cost: { reserve: 6, settle: "header:x-cost" } }, ["cost-above-limit"]],
    [{ cost: { reserve: 5, settle: "header:x-cost" } }, []],
    [{ cost: { settle: "header:x-cost", max: 9 } }, []],
    [{ cost: { from: "body:bytes", max: 6 } }, ["max-cost-above-limit"]],
    [{ cost: { from: "body:bytes", max: 6 }, capacity: 6 }, []],
    [{ cost: { from: "body:bytes", max: 4 }, shards: 2 }, ["max-cost-above-limit"]],
    [{ cost: { from: "body:bytes", max: 5 } }, []],
    [{ cost: { from: "custom:depth", max: 6 } }, ["max-cost-above-limit"]],
    [{ cost: { from: "custom:depth", max: 7 }, maxReserved: 2 }, ["max-cost-above-limit"]],
    [{ cost: 6, maxReserved: 9, wait: "1m" }, ["cost-above-limit"]],
  ])("is compared with the limit: %j gives %j", (rule, expected) => {
    expect(codes(rule)).toEqual(expected);
  });

  test.each<[Fields, quota: string, cure: string]>([
    [{ cost: 25 }, "5 per 1m has 5", "Make the limit at least as high as the cost"],
    [
      { cost: 25, maxReserved: 9, ...PROGRAMS },
      "5 per 1m has 14, with reservations",
      "Make the limit higher, or maxReserved",
    ],
    [
      { cost: 25, maxReserved: 2, shards: 2, ...PROGRAMS },
      "5 per 1m has 4 in each of 2 shards, with reservations",
      "Make the limit higher, or maxReserved",
    ],
  ])("above the limit gets a message with the bound and the cure: %j", (rule, quota, cure) => {
    const [finding] = findings(rule, {});
    const message = expect.stringMatching(`, (and|because) ${quota}$`);
    expect(finding).toMatchObject({ message, cure });
  });

  test.each<[Fields, string]>([
    [{ cost: 6 }, 'the rule "r0" denies every request, because a request costs 6, and'],
    [
      { cost: { from: "body:bytes", max: 6 } },
      'the rule "r0" denies every request that costs 6, such as a body of unknown length, because',
    ],
    [
      { cost: 6, mode: "mark" },
      'the rule "r0" marks every request, because a request costs 6, and',
    ],
    [
      { cost: { from: "body:bytes", max: 6 }, mode: "mark" },
      'the rule "r0" marks every request that costs 6, such as a body of unknown length, because',
    ],
  ])("above the limit of one tier denies only clients with this limit: %j", (rule, message) => {
    const tiers = { by: "country", limits: { AT: { limit: 9, window: "1m" } } };
    expect(findings({ tiers, ...rule }, {})).toMatchObject([
      { message: `For clients with the limit 5 per 1m, ${message} 5 per 1m has 5` },
    ]);
  });

  test("of a body of unknown length is a part of the limit if the rule has shards", () => {
    expect(findings({ cost: "body:bytes", shards: 2 })).toMatchObject([
      { message: expect.stringContaining("costs one shard's share of the smallest limit") },
    ]);
  });

  test.each<[Fields, string[]]>([
    [{ cost: { from: "body:bytes", default: 5 } }, ["cost-without-max"]],
    [{ cost: { from: "body:bytes", max: 5, default: 5 } }, []],
    [{ cost: "body:bytes" }, ["cost-without-max"]],
    [{ cost: { reserve: "body:bytes", settle: "header:x-cost" } }, ["cost-without-max"]],
    [{ cost: "custom:depth" }, ["cost-without-max"]],
    [{ cost: { from: "custom:depth", default: 5 } }, ["cost-without-max"]],
    [{ cost: { reserve: 5, settle: "header:x-cost", default: 0 } }, []],
    [{ cost: { reserve: 5, settle: "custom:usage", default: 5 } }, []],
    [{ cost: { reserve: "custom:depth", settle: "custom:usage", max: 5, default: 5 } }, []],
    [
      { cost: { reserve: "custom:depth", settle: "custom:usage", default: 4 } },
      ["cost-without-max"],
    ],
    [{ cost: { settle: "custom:usage" } }, ["cost-without-max"]],
    [{ cost: { settle: "custom:usage", max: 9, default: 9 } }, []],
    [{ cost: { settle: "header:x-cost", max: 9, default: 0 } }, []],
  ])("is reported if a client can lower it by making it unknown: %j gives %j", (rule, expected) => {
    expect(codes(rule)).toEqual(expected);
  });
});

test.each<[Fields, string[]]>([
  [{ ban: "59s" }, ["ban-shorter-than-window"]],
  [{ ban: "1m" }, []],
  [{ ban: ["10s", "59s"] }, ["ban-shorter-than-window"]],
  [{ ban: ["10s", "1m"] }, []],
  [{ limit: 0, match: {} }, ["denies-everybody"]],
  [{ ...limits([5, "1m"], [0, "1h"]), match: {} }, ["denies-everybody"]],
  [{ limit: 0, match: { paths: ["/*"] } }, ["denies-everybody"]],
  [{ limit: 0, match: { ips: ["0.0.0.0/0", "::/0"] } }, ["denies-everybody"]],
  [{ limit: 0, match: { ips: ["::/0"] }, mode: "mark" }, ["nothing-enforced"]],
  [{ limit: 0, match: { ips: ["192.0.2.0/24"] } }, []],
  [{ limit: 0, match: { except: { ips: ["192.0.2.0/24"] } } }, []],
  [{ limit: 0, match: {}, exempt: { ips: ["192.0.2.0/24"] } }, []],
  [{ ban: "1h", window: "day" }, ["ban-shorter-than-window"]],
  [{ ban: "1d", window: "day" }, []],
  [{ ban: "5m", ...limits([5, "1m"], [100, "1d"]) }, []],
  [{ concurrent: 4 }, []],
  [{ concurrent: 1000, ...limits([5, "1m"], [9, "1d"]) }, []],
  [{ concurrent: 4, maxDuration: "5s", ban: "59s" }, ["ban-shorter-than-window"]],
  [{ concurrent: 4, maxDuration: "2h", ban: "1m" }, []],
  [{ concurrent: 2, cost: 3 }, []],
  [{ concurrent: 2, maxDuration: 60_000 }, ["milliseconds"]],
  [{ concurrent: 2, limit: 0, match: {} }, ["denies-everybody"]],
  [ONLY_OPEN, []],
  [
    {
      ...ONLY_OPEN,
      ban: "1h",
      tiers: { by: "country", limits: { DE: { limit: 5, window: "1m" } } },
    },
    [],
  ],
  [{ wait: "2s", window: "1s" }, []],
  [{ wait: "1m", cost: 5 }, []],
  [{ wait: "1m", cost: 6 }, ["cost-above-limit"]],
  [{ wait: "1s", concurrent: 2 }, []],
  [{ wait: "2s", window: "1m" }, []],
  [{ wait: "1s", window: "1m" }, ["wait-has-little-effect"]],
  [{ wait: "1m", window: "day" }, ["wait-has-little-effect"]],
  [{ wait: "1m", ...tier({ limit: 9, window: "1h" }) }, ["wait-has-little-effect"]],
  [{ wait: "1m", ...tier({ limit: 0, window: "1h" }) }, []],
  [{ wait: "1m", ...tier({ concurrent: 9 }) }, []],
  [{ async: true, limit: 10 }, []],
  [{ async: true, limit: 9 }, ["async-exceeds-limit"]],
  [{ async: true, limit: 9, mode: "shadow" }, ["nothing-enforced", "async-exceeds-limit"]],
  [{ async: true, limit: 0 }, []],
  [{ async: true, limit: 90, ...tier({ limit: 9, window: "1h" }) }, ["async-exceeds-limit"]],
  [{ async: true, limit: 90, ...tier({ limit: 0, window: "1h" }) }, []],
  [{ exempt: { ips: ["::/0"] } }, ["exempts-everybody"]],
  [{ exempt: { ips: ["10.0.0.0/8", "2001:db8::/32"] } }, []],
  [{ exempt: { ips: ["0.0.0.0/1", "128.0.0.0/1"] } }, ["exempts-many", "exempts-many"]],
  [{ match: { methods: ["FETCH"] } }, ["unknown-method"]],
  [{ match: { methods: ["get", "PROPFIND", "QUERY"] } }, []],
  [{ match: { paths: ["/a"], except: { methods: ["OPTION"] } } }, ["unknown-method"]],
])("the rule %j gives %j", (rule, expected) => {
  expect(codes(rule)).toEqual(expected);
});

describe("a rule with async", () => {
  const reads = { name: "reads", limit: 90, async: true };

  test.each([
    ...["login", "user_logins", "autologin", "reset-password", "otp", "sms-otp", "totp"],
    ...["token", "api-tokens", "pay", "payments", "card_payment"],
  ])("gets one warning that it exceeds its limit, also if its name is %s", (name) => {
    const found = findings({ ...reads, name, limit: 9 });
    expect(found).toEqual(findings({ ...reads, name }));
    expect(found).toMatchObject([
      {
        code: "async-exceeds-limit",
        path: "rules[0].async",
        message: expect.stringContaining("one request more for each isolate"),
        cure: expect.stringMatching(/^Remove async/),
      },
    ]);
  });

  test.each(["payload", "display", "hotpath", "footprints", "search"])(
    "gets no warning if its name is %s",
    (name) => {
      expect(findings({ ...reads, name })).toEqual([]);
    },
  );

  test.each<Fields>([
    { lease: false },
    { ban: "1m" },
    { window: "1s", wait: "1s" },
    { shards: 2 },
    { capacity: 9 },
    { maxReserved: 2 },
    { count: { status: [401] } },
    { cost: { reserve: 2, settle: "header:x-cost" } },
    { concurrent: 4 },
    ONLY_OPEN,
    { lease: false, ...tier({ limit: 50, window: "1m" }) },
    { lease: false, match: {} },
  ])("gets one warning if all of its requests wait for the rule %j", (fields) => {
    for (const limit of [90, 9]) {
      const found = findings({ ...reads, limit }, fields);
      expect(found).toMatchObject([
        {
          code: "async-has-no-effect",
          path: "rules[0].async",
          message: expect.stringContaining('because the rule "r1" counts all of them too'),
        },
      ]);
    }
  });

  test.each<Fields>([
    {},
    { lease: false, mode: "shadow" },
    { lease: false, mode: "mark", onError: undefined },
    { lease: false, for: "programs", match: undefined },
    { lease: false, limit: 90, async: true },
    { lease: false, exempt: { ips: ["10.0.0.0/8"] } },
    { lease: false, match: { paths: ["/a"], methods: ["POST"] } },
    { lease: false, match: { paths: ["/b"] } },
    tier({ concurrent: 9 }),
  ])("gets no warning if a request can pass ahead beside the rule %j", (fields) => {
    expect(codes(reads, fields)).toEqual([]);
  });
});

describe("a condition on a header with data about the client", () => {
  test.each<[header: string, cure: string]>([
    ["cf-ipcountry", 'countries: ["DE"]'],
    ["CF-Connecting-IP", "ips"],
    ["true-client-ip", "ips"],
    ["X-Forwarded-For", "ips"],
    ["x-real-ip", "ips"],
  ])("%s gets a warning with the cure", (header, cure) => {
    const rule = { match: { paths: ["/a"], headers: { [header]: "DE" } } };
    expect(findings(rule)).toEqual([
      {
        code: "client-header",
        severity: "warning",
        path: `rules[0].match.headers["${header.toLowerCase()}"]`,
        message: expect.stringContaining(header.toLowerCase()),
        cure: expect.stringContaining(cure),
      },
    ]);
  });

  test("gets a warning in except too", () => {
    const rule = { match: { except: { headers: { "cf-ipcountry": ["DE", "AT"] } } } };
    expect(findings(rule)).toMatchObject([
      { code: "client-header", path: 'rules[0].match.except.headers["cf-ipcountry"]' },
    ]);
  });

  test("gets a warning beside the one about a condition that clients choose", () => {
    const rule = { match: { headers: { "cf-ipcountry": "DE", "x-plan": "free" } } };
    expect(codes(rule)).toEqual(["chosen-match", "client-header"]);
  });

  test("gets no warning if the field is of the origin or of another service", () => {
    const headers = { constructor: "a", "cf-worker": "b", "x-forwarded-proto": "http" };
    expect(codes({ match: { headers } })).toEqual(["chosen-match"]);
  });
});

describe("conditions on a request", () => {
  const FREE = { match: { paths: ["/a"], headers: { "x-plan": "free" } } };
  const ALL: Fields = {};

  test.each<[string, Fields[], string[]]>([
    ["on a header, and no other rule", [FREE], ["chosen-match"]],
    ["on a query", [{ match: { paths: ["/a"], query: { a: false } } }], ["chosen-match"]],
    ["on a header, and a rule for all", [FREE, { ...ALL, limit: 50 }], []],
    [
      "on a header, and a rule for other paths",
      [FREE, { match: { paths: ["/b"] } }],
      ["chosen-match"],
    ],
    [
      "on a header, and a rule in shadow mode",
      [FREE, { ...ALL, limit: 50, mode: "shadow" }],
      ["chosen-match"],
    ],
    [
      "on a header, and a rule for another value",
      [FREE, { match: { paths: ["/a"], headers: { "x-plan": "pro" } } }],
      ["chosen-match", "chosen-match"],
    ],
    ["on a header in shadow mode", [{ ...FREE, mode: "shadow" }, ALL], []],
    ["on addresses", [{ match: { ips: ["192.0.2.0/24"], countries: ["DE"], asns: [1] } }], []],
    ["of an exception", [{ match: { except: { headers: { a: true } } } }], ["chosen-except"]],
    [
      "of an exception, for some addresses",
      [{ match: { except: { headers: { a: true }, ips: ["192.0.2.1"] } } }],
      [],
    ],
    [
      "of an exception, and a rule for all",
      [{ match: { except: { query: { a: true } } } }, { match: {}, limit: 50, key: "global" }],
      [],
    ],
    ["of an exception for bots", [{ match: { except: { bots: "verified" } } }], []],
    [
      "on a country that is none",
      [{ match: { countries: ["DE", "ZZ", "T1"] } }],
      ["unknown-country"],
    ],
    ["that except everybody", [{ match: { except: { ips: ["::/0"] } } }], ["exempts-everybody"]],
    [
      "that except something else",
      [{ match: { countries: ["DE"], except: { countries: ["FR"] } } }],
      [],
    ],
  ])("%s", (_, rules, expected) => {
    expect(codes(...rules)).toEqual(expected);
  });

  test("make rules differ, unless the conditions are the same", () => {
    const login = { match: { paths: ["/login"], countries: ["DE"] }, onError: "closed" };
    const user = { ...login, key: "header:user" };
    expect(codes(user, { ...login, limit: 50 })).toEqual([]);
    const others = {
      match: { paths: ["/login"], countries: ["FR"] },
      onError: "closed",
      limit: 50,
    };
    expect(codes(user, others)).toEqual(["no-address-limit"]);
  });
});

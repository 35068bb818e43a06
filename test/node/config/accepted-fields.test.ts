import { type ConfigInput, defineConfig, type RuleInput } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { bans } from "../../suite/counters.ts";
import { definedRule, withRule } from "./fixtures.ts";

const MAX = 999_999_999_999_999;

test.for<[object, number]>([
  [{}, 0],
  [{ maxReserved: 5, wait: 1 }, 1000],
  [{ maxReserved: 5, wait: "60s", mode: "shadow" }, 60_000],
  [{ concurrent: 5, wait: "1m", count: { status: [401] } }, 60_000],
  [{ maxReserved: 5, wait: "1m", count: { status: [401], reserve: true } }, 60_000],
  [{ wait: "2s", tiers: { by: "country", limits: { DE: { concurrent: 5 } } } }, 2000],
])("the rule %o waits for %i ms", ([fields, waitMs]) => {
  expect(definedRule(fields)).toMatchObject({ waitMs });
});

describe("capacity and maxReserved", () => {
  test.for<[string, object, object[]]>([
    ["default to no rollover and no reservations", {}, [{ capacity: 5, maxReserved: 0 }]],
    [
      "apply to the limit of the same rule",
      { capacity: 9, maxReserved: 3 },
      [{ capacity: 9, maxReserved: 3 }],
    ],
    ["may equal the limit", { capacity: 5, maxReserved: 0 }, [{ capacity: 5 }]],
    ["may have the largest value", { capacity: MAX, maxReserved: MAX }, [{ capacity: MAX }]],
    [
      "may be 0 reservations with a limit of 0",
      { limit: 0, maxReserved: 0 },
      [{ capacity: 0, maxReserved: 0 }],
    ],
    [
      "apply to the limit of the same element of limits",
      {
        limits: [
          { limit: 5, window: 60, capacity: 7 },
          { limit: 9, window: "1h", maxReserved: 4 },
        ],
      },
      [
        { policy: "api/1m", capacity: 7, maxReserved: 0 },
        { policy: "api/1h", capacity: 9, maxReserved: 4 },
      ],
    ],
  ])("%s", ([, fields, windows]) => {
    expect(definedRule(fields).windows).toMatchObject(windows);
  });
});

test.for<[Partial<RuleInput>, object]>([
  [{ start: "spread" }, { spread: true }],
  [{ start: "2026-01-01T09:00:00Z" }, { spread: false }],
  [{ shards: 5 }, { shards: 5 }],
  [{ shards: 100, limit: 100 }, { shards: 100 }],
  [{ shards: 1, limit: 0 }, { shards: 1 }],
  [{ cost: 0 }, { cost: 0 }],
  [{ cost: MAX }, { cost: MAX }],
  [{ count: "request" }, { count: undefined }],
  [{ count: { status: [401, 403] } }, { count: { statuses: [401, 403], reserve: false } }],
  [{ count: { status: [100, 599] } }, { count: { statuses: [100, 599], reserve: false } }],
  [{ count: { status: [401], reserve: true } }, { count: { statuses: [401], reserve: true } }],
  [{ count: { status: [401], reserve: false } }, { count: { statuses: [401], reserve: false } }],
  [{ ban: "15m" }, { ban: bans(900_000) }],
  [{ ban: 1 }, { ban: bans(1000) }],
  [{ ban: ["15m"] }, { ban: bans(900_000) }],
  [{ ban: { lengths: ["15m"] } }, { ban: bans(900_000) }],
  [
    { ban: ["1m", 60, "10m"] },
    { ban: { lengthsMs: [60_000, 60_000, 600_000], forgetAfterMs: 600_000 } },
  ],
  [
    { ban: { lengths: [1, "10m"], forgetAfter: "1d" } },
    { ban: { lengthsMs: [1000, 600_000], forgetAfterMs: 86_400_000 } },
  ],
  [{ ban: Array(10).fill("1h") }, { ban: { lengthsMs: Array(10).fill(3_600_000) } }],
  [{ retryJitter: "10s" }, { retryJitterMs: 10_000 }],
  [{}, { lease: true }],
  [{ lease: "auto" }, { lease: true }],
  [{ lease: false }, { lease: false }],
  [{}, { async: false }],
  [{ async: false, ban: "1m", onError: "closed" }, { async: false }],
  [{ async: true }, { async: true, onError: "open" }],
  [
    { async: true, onError: "local", mode: "shadow" },
    { async: true, mode: "shadow" },
  ],
  [
    { async: true, lease: false, shards: 5, capacity: 9 },
    { async: true, shards: 5 },
  ],
  [{ async: true, count: { status: [401], reserve: true } }, { async: true }],
  [{ async: true, cost: { reserve: 2, settle: "header:x-cost" } }, { async: true }],
  // `lease` is accepted even if it has no effect.
  [
    { lease: "auto", ban: "1m" },
    { lease: true, ban: bans(60_000) },
  ],
  [
    { lease: "auto", shards: 2 },
    { lease: true, shards: 2 },
  ],
  [{}, { mode: "enforce", tellOrigin: false }],
  [{ mode: "mark" }, { mode: "mark", tellOrigin: false, onError: "open" }],
  [{ mode: "mark", tellOrigin: true }, { tellOrigin: true }],
  [{ mode: "mark", onError: "open", shards: 5, cost: "header:x-cost" }, { mode: "mark" }],
  [
    { mode: "mark", for: "programs" },
    { mode: "mark", for: "programs" },
  ],
  [{ tellOrigin: true }, { mode: "enforce", tellOrigin: true }],
  [{ mode: "shadow", tellOrigin: false }, { mode: "shadow" }],
  [{ notify: [1, 0.8] }, { notify: [0.8, 1] }],
  [{ notify: [0.001], concurrent: 4, mode: "mark" }, { notify: [0.001] }],
  [{ onError: "local" }, { onError: "local", localShare: 0.25 }],
  [{ onError: "local", localShare: 1 }, { localShare: 1 }],
  [{ onError: "local", localShare: 0.001 }, { localShare: 0.001 }],
])("parses a rule with %o to %o", ([fields, expected]) => {
  expect(definedRule(fields)).toMatchObject(expected);
});

describe("a source of limits", () => {
  const source = { from: "custom:quota", max: 1000, default: 100 };
  const claim = { from: "jwt:/limits/rpm", max: 1000, default: 100 };
  const from = { kind: "custom", name: "quota" };
  const windowsOf = (fields: object) => {
    const more = { jwt: { secret: "JWT" }, custom: { limits: { quota: () => 5 } } };
    return defineConfig({ ...(withRule(fields) as ConfigInput), ...more }).rules[0];
  };

  test.for<[unknown, number]>([
    [undefined, 60_000],
    ["0s", 0],
    [0, 0],
    ["5m", 300_000],
    [90, 90_000],
    ["1h", 3_600_000],
  ])("with cacheFor %o is asked for again after %i ms", ([cacheFor, cacheMs]) => {
    const given = { ...source, ...(cacheFor !== undefined && { cacheFor }) };
    expect(windowsOf({ limit: given })?.windows).toEqual([
      {
        policy: "api",
        limit: 100,
        capacity: 100,
        maxReserved: 0,
        windowMs: 60_000,
        offsetMs: 0,
        from: { limit: { from, max: 1000, default: 100, cacheMs } },
      },
    ]);
  });

  test("may be a function or a claim, for limit, capacity and concurrent, in rules and tiers", () => {
    const tiers = {
      by: "header:plan",
      limits: {
        pro: {
          limits: [
            { limit: claim, window: "1m" },
            { limit: 9, window: "1d", capacity: source },
          ],
        },
        free: { limit: 9, window: "1m" },
      },
    };
    const rule = windowsOf({ limit: 7, window: "1m", concurrent: source, tiers });
    const limit = { from, max: 1000, default: 100, cacheMs: 60_000 };
    expect(rule).toMatchObject({ readsLimits: true });
    expect(rule?.windows.map((each) => [each.policy, each.limit, each.from])).toEqual([
      ["api/1m", 7, undefined],
      ["api/concurrent", 100, { limit }],
    ]);
    const pro = rule?.tiers?.windows.get("pro");
    const pointer = { kind: "jwt", name: "/limits/rpm", pointer: ["limits", "rpm"] };
    expect(pro?.map((each) => [each.limit, each.capacity, each.from])).toEqual([
      [100, 100, { limit: { ...limit, from: pointer } }],
      [9, 100, { capacity: limit }],
      [100, 100, { limit }],
    ]);
  });

  test("may have the default 0, and a max that is the highest limit", () => {
    const [window] = windowsOf({ limit: { ...source, max: MAX, default: 0 } })?.windows ?? [];
    expect(window).toMatchObject({ limit: 0, from: { limit: { max: MAX } } });
  });

  test("is absent from a rule with numbers only", () => {
    const rule = windowsOf({ limit: 7, capacity: 9, concurrent: 4 });
    expect(rule?.readsLimits).toBe(false);
    expect(rule?.windows.some((each) => "from" in each)).toBe(false);
  });

  test("may be a function in a rule for programs", () => {
    expect(windowsOf({ for: "programs", limit: source })?.readsLimits).toBe(true);
  });
});

describe("tiers", () => {
  const pro = { limit: 50, window: "1m" };

  test("parse like a rule's own limits, with the same policy names", () => {
    const limits = {
      pro: { ...pro, capacity: 80, maxReserved: 2 },
      "Max-1.0_x": {
        limits: [
          { limit: 90, window: "1m" },
          { limit: 900, window: "1h" },
        ],
      },
    };
    const start = "2026-01-01T00:30:00Z";
    const { tiers, windows } = definedRule({ start, tiers: { by: "header:Plan | ip", limits } });
    expect(tiers?.by).toEqual([[{ kind: "header", name: "plan" }, { kind: "ip" }]]);
    const minute = { windowMs: 60_000, offsetMs: 0, maxReserved: 0 };
    expect(tiers?.windows).toEqual(
      new Map([
        ["pro", [{ ...minute, policy: "api", limit: 50, capacity: 80, maxReserved: 2 }]],
        [
          "Max-1.0_x",
          [
            { ...minute, policy: "api/1m", limit: 90, capacity: 90 },
            {
              policy: "api/1h",
              limit: 900,
              capacity: 900,
              maxReserved: 0,
              windowMs: 3_600_000,
              offsetMs: 1_800_000,
            },
          ],
        ],
      ]),
    );
    expect(windows).toMatchObject([{ policy: "api", limit: 5 }]);
  });

  test.for(["__proto__", "constructor", "prototype", "toString"])("accept the name %s", (name) => {
    const limits = JSON.parse(`{ "${name}": { "limit": 7, "window": 60 } }`);
    const { tiers } = definedRule({ tiers: { by: "header:plan", limits } });
    expect([...(tiers?.windows ?? [])]).toMatchObject([[name, [{ limit: 7 }]]]);
  });

  test("may depend on a parameter of the rule's path", () => {
    const tiers = { by: "param:plan", limits: { pro } };
    expect(definedRule({ tiers, match: { paths: ["/:plan/*"] } }).tiers?.windows.size).toBe(1);
  });
});

describe("exempt", () => {
  test("parses networks, and writes header names in lower case", () => {
    const ips = ["198.51.100.0/24", "192.0.2.1", "2001:db8::/32", "::1"];
    const headers = { "X-Probe": "up and running", "X-Internal": { secret: "INTERNAL" } };
    const { exempt } = definedRule({ exempt: { ips, headers } });
    expect([...(exempt?.networks ?? [])].map(([address, bits]) => `${address}/${bits}`)).toEqual([
      "198.51.100.0/24",
      "192.0.2.1/32",
      "2001:db8::/32",
      "::1/128",
    ]);
    expect(exempt?.headers).toEqual([
      { name: "x-probe", value: "up and running" },
      { name: "x-internal", value: { secret: "INTERNAL" } },
    ]);
  });

  test("accepts ips without headers, and headers without ips", () => {
    expect(definedRule({ exempt: { ips: ["::/0"] } }).exempt?.headers).toEqual([]);
    expect(definedRule({ exempt: { headers: { a: "b" } } }).exempt?.networks.size).toBe(0);
  });
});

describe("jwt", () => {
  const defined = (jwt: object) =>
    defineConfig({ ...withRule({ key: "jwt:sub | ip" }), jwt } as ConfigInput).jwt;
  const url = "https://issuer.example.com/.well-known/jwks.json";

  test.for<[NonNullable<ConfigInput["jwt"]>, object]>([
    [{ secret: "JWT" }, { kind: "secret", secret: "JWT", alg: "HS256", header: "authorization" }],
    [
      { secret: "JWT", alg: "HS512", header: "X-Token", issuer: "me", audience: "api" },
      {
        kind: "secret",
        secret: "JWT",
        alg: "HS512",
        header: "x-token",
        issuer: "me",
        audience: "api",
      },
    ],
    [{ jwks: url }, { kind: "jwks", url, algs: ["RS256"], header: "authorization" }],
    [
      { jwks: url, algs: ["ES256", "EdDSA"] },
      { kind: "jwks", url, algs: ["ES256", "EdDSA"], header: "authorization" },
    ],
  ])("parses %o to %o", ([jwt, expected]) => {
    expect(defined(jwt)).toEqual(expected);
  });

  test("allows claims as keys of rules and of tiers", () => {
    const tiers = { by: "jwt:plan", limits: { pro: { limit: 9, window: 60 } } };
    const config = { ...withRule({ key: ["jwt:org.id", "jwt:sub"], tiers }), jwt: { jwks: url } };
    const [rule] = defineConfig(config as ConfigInput).rules;
    expect(rule?.key).toEqual([[{ kind: "jwt", name: "org.id" }], [{ kind: "jwt", name: "sub" }]]);
    expect(rule?.tiers?.by).toEqual([[{ kind: "jwt", name: "plan" }]]);
  });

  test.each([
    ["/a", ["a"]],
    ["/app_metadata/plan", ["app_metadata", "plan"]],
    ["/https:~1~1example.com~1plan", ["https://example.com/plan"]],
    ["/~0~1~01/0/a.b", ["~/~1", "0", "a.b"]],
    ["/1/2/3/4/5/6/7/8", ["1", "2", "3", "4", "5", "6", "7", "8"]],
    [`/${"a".repeat(255)}`, ["a".repeat(255)]],
  ])("may be read at the pointer %s", (name, pointer) => {
    const config = { ...withRule({ key: `ip | jwt:${name}` }), jwt: { jwks: url } };
    expect(defineConfig(config as ConfigInput).rules[0]?.key).toEqual([
      [{ kind: "ip" }, { kind: "jwt", name, pointer }],
    ]);
  });
});

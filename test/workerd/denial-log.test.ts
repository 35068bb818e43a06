import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Rule } from "../../src/config/rule.ts";
import { logDecision } from "../../src/gateway/log.ts";
import {
  type Limited,
  NO_ENFORCED_RULE,
  type Quota,
  type RuleVerdict,
} from "../../src/limiter/decision.ts";

/** The time of a line, in milliseconds after the start of the test, and its content. */
type Line = readonly [atMs: number, fields: Record<string, unknown>];

let lines: Line[];
let start = 1_700_000_000_000;
let now = start;

beforeEach(() => {
  // The log counts for the whole isolate, so each test begins in a later second.
  start += 3_600_000;
  now = start;
  vi.spyOn(Date, "now").mockImplementation(() => now);
  lines = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => {
      lines.push([now - start, JSON.parse(line)]);
    });
  }
  deny(1);
  now += 10_000;
  lines = [];
});

afterEach(() => {
  vi.restoreAllMocks();
});

function denial(name = "login"): Limited {
  const rule = { name, mode: "enforce" } as Rule;
  const appliedRule = { rule, windows: [], identity: "hash" };
  const deniedBy: RuleVerdict = { appliedRule, says: "denied", quotas: [], cost: 1 };
  return { outcome: "limited", quotas: [], verdicts: [deniedBy], retryAfterMs: 500, deniedBy };
}

const LINE = {
  weir: "denied",
  mode: "enforce",
  rule: "login",
  policy: "login",
  client: "hash",
  cost: 1,
  retryAfterMs: 500,
};

function deny(times: number, linesPerSecond = 2): void {
  for (let time = 0; time < times; time++) logDecision(denial(), linesPerSecond);
}

const reported = () =>
  lines.reduce((sum, [, { weir, count }]) => sum + (weir === "denied" ? 1 : Number(count)), 0);

describe("the denial log", () => {
  it("writes a line for each denial up to the maximum of a second", () => {
    deny(3);
    expect(lines).toEqual([
      [10_000, LINE],
      [10_000, LINE],
    ]);
  });

  it("reports the other denials with the first denial of a later second", () => {
    deny(5);
    now += 60_000;
    deny(1);
    expect(lines.slice(2)).toEqual([
      [70_000, { weir: "denied-omitted", count: 3 }],
      [70_000, LINE],
    ]);
  });

  it("reports every denial of a minute, in at most one line more than the maximum", () => {
    const begin = now;
    let sent = 0;
    for (; now < begin + 60_000; now += 25) {
      sent++;
      deny(1, 10);
    }
    deny(1, 10);
    expect(reported()).toBe(sent + 1);
    for (let second = 10; second <= 70; second++) {
      const ofSecond = lines.filter(([at]) => Math.floor(at / 1000) === second);
      expect(ofSecond.length).toBeLessThanOrEqual(11);
    }
  });

  it("writes nothing with a maximum of 0", () => {
    deny(5, 0);
    now += 5000;
    deny(1, 0);
    expect(lines).toEqual([]);
  });

  it("goes on if the clock is set back", () => {
    deny(3);
    now -= 3_600_000;
    deny(1);
    const events = lines.map(([, { weir }]) => weir);
    expect(events).toEqual(["denied", "denied", "denied-omitted", "denied"]);
  });
});

describe("the log of a request that passed ahead", () => {
  const request = { headers: new Headers({ "cf-ray": "8f1b2c3d4e5f6a7b-FRA" }) };

  /** Logs a request that has passed under these rules, and waits until the verdicts on it have arrived. */
  async function logAhead(...late: RuleVerdict[]): Promise<Record<string, unknown>[]> {
    const verdicts = Promise.resolve(late);
    const pending = late.map(({ appliedRule, cost }): RuleVerdict => {
      return { appliedRule, says: "undecided", quotas: [], cost, pendingVerdict: verdicts };
    });
    const ahead = { policies: () => [], quotas: () => [], verdicts };
    logDecision({ ...NO_ENFORCED_RULE, verdicts: pending, ahead }, 10, request);
    expect(lines).toEqual([]);
    await verdicts;
    return lines.map(([, fields]) => fields);
  }

  function late(name: string, fields: Partial<RuleVerdict>): RuleVerdict {
    return { ...denial(name).deniedBy, ...fields };
  }

  const exceeded = { violated: true, retryAfterMs: 500 } as Quota;
  const failure = { cause: "timeout", detail: "no answer" } as const;

  it("has a line for each rule that has denied it later, with the limit and the request", async () => {
    const hourly = { ...exceeded, policy: "login/1h" };
    const daily = { policy: "site", violated: true } as Quota;
    const logged = await logAhead(
      late("login", { quotas: [{ ...hourly, violated: false }, hourly] }),
      late("other", { says: "admitted", quotas: [{ ...hourly, violated: false }] }),
      late("site", { quotas: [daily], cost: 7 }),
    );
    const ray = "8f1b2c3d4e5f6a7b-FRA";
    const { retryAfterMs: _, ...line } = LINE;
    expect(logged).toEqual([
      { ...LINE, mode: "ahead", policy: "login/1h", ray },
      {
        ...line,
        mode: "ahead",
        rule: "site",
        policy: "site",
        cost: 7,
        reason: "exceeds-limit",
        ray,
      },
    ]);
  });

  it("says that requests pass after a failed answer, once in ten seconds", async () => {
    const failed = late("login", { says: "undecided", failure });
    const expected = [{ weir: "undecided", ...failure, requests: "pass" }];
    expect(await logAhead(failed, failed)).toEqual(expected);
  });

  it("has no line if the store admits it", async () => {
    expect(await logAhead(late("login", { says: "admitted" }))).toEqual([]);
  });
});

describe("the place of a request", () => {
  function placeIn(headers: Record<string, string>, cf?: unknown): Record<string, unknown> {
    const get = (name: string) => headers[name] ?? null;
    now += 1000;
    logDecision(denial(), 10, { headers: { get }, cf });
    const { colo, ray } = lines.at(-1)?.[1] ?? {};
    return { ...(colo !== undefined && { colo }), ...(ray !== undefined && { ray }) };
  }

  it("is Cloudflare's location and the id of the request", () => {
    const ray = "8f1b2c3d4e5f6a7b-FRA";
    expect(placeIn({ "cf-ray": ray }, { colo: "FRA" })).toEqual({ colo: "FRA", ray });
    expect(placeIn({ "cf-ray": "8f1b2c3d4e5f6a7b" })).toEqual({ ray: "8f1b2c3d4e5f6a7b" });
  });

  it.each([
    "",
    "x",
    'a"b',
    "8f1b2c3d4e5f6a7b\n{}",
    "8f1b2c3d4e5f6a7b-FRA, 8f1b2c3d4e5f6a7b-FRA",
    "203.0.113.7",
    "2001:db8::1",
    "8".repeat(5000),
    "\u2028",
    "Bearer abc",
  ])("does not contain the unusual value %j", (value) => {
    expect(placeIn({ "cf-ray": value }, { colo: value === "x" ? "" : value })).toEqual({});
  });

  it.each([undefined, null, 1, "FRA", [], { colo: 5 }, { colo: ["FRA"] }, { colo: {} }])(
    "may lack the location: %j",
    (cf) => {
      expect(placeIn({}, cf)).toEqual({});
    },
  );
});

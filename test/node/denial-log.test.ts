import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Denial, DenialLog, type RequestPlace } from "../../src/denial-log.ts";

const SECOND = 1_700_000_000_000;

/** The time of a line, in milliseconds after the start of the test, and its content. */
type Line = readonly [atMs: number, event: string, fields: Record<string, unknown>];

let lines: Line[];
let log: DenialLog;

beforeEach(() => {
  vi.useFakeTimers({ now: SECOND });
  lines = [];
  const write = (event: string, fields: Record<string, unknown>) =>
    void lines.push([Date.now() - SECOND, event, fields]);
  log = new DenialLog(write, () => {});
});

afterEach(() => {
  vi.useRealTimers();
});

function denial(rule = "login"): Denial {
  return { mode: "enforce", rule, policy: rule, client: "hash", cost: 1, retryAfterMs: 500 };
}

function deny(times: number, linesPerSecond = 2, rule = "login"): void {
  for (let time = 0; time < times; time++) log.add(denial(rule), linesPerSecond);
}

const events = () => lines.map(([, event]) => event);
const reported = () =>
  lines.reduce((sum, [, event, { count }]) => sum + (event === "denied" ? 1 : Number(count)), 0);

describe("the denial log", () => {
  it("writes a line for each denial up to the maximum of a second", () => {
    deny(3);
    expect(lines).toEqual([
      [0, "denied", denial()],
      [0, "denied", denial()],
    ]);
  });

  it("writes one more line about the other denials when the second ends", async () => {
    await vi.advanceTimersByTimeAsync(400);
    deny(5);
    deny(1, 2, "search");
    await vi.advanceTimersByTimeAsync(599);
    expect(events()).toEqual(["denied", "denied"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(lines.slice(2)).toEqual([
      [1000, "denied-omitted", { count: 4, rules: { login: 3, search: 1 } }],
    ]);
  });

  it("writes it with the first denial of a later second if the runtime has ended the timer", () => {
    deny(3);
    vi.clearAllTimers();
    vi.setSystemTime(SECOND + 60_000);
    deny(1);
    expect(lines.slice(2)).toEqual([
      [60_000, "denied-omitted", { count: 1, rules: { login: 1 } }],
      [60_000, "denied", denial()],
    ]);
  });

  it("waits for the end of every second, even if the runtime has ended an earlier timer", async () => {
    deny(3);
    vi.clearAllTimers();
    vi.setSystemTime(SECOND + 1000);
    deny(3);
    await vi.advanceTimersByTimeAsync(1000);
    expect(events().filter((event) => event === "denied-omitted")).toHaveLength(2);
  });

  it("starts one timer in a second, and none if every denial has a line", () => {
    deny(2);
    expect(vi.getTimerCount()).toBe(0);
    deny(1000);
    expect(vi.getTimerCount()).toBe(1);
  });

  it("reports every denial if the timer ends early", async () => {
    deny(3);
    // The clock is a little behind the timer.
    vi.setSystemTime(SECOND - 1);
    await vi.advanceTimersByTimeAsync(1000);
    vi.setSystemTime(SECOND + 999);
    deny(4);
    await vi.advanceTimersByTimeAsync(1000);
    expect(reported()).toBe(7);
  });

  it("reports every denial of a minute, in at most one line more than the maximum", async () => {
    let sent = 0;
    for (let ms = 0; ms < 60_000; ms += 25) {
      deny(1, 10, `rule-${sent++ % 3}`);
      await vi.advanceTimersByTimeAsync(25);
    }
    await vi.advanceTimersByTimeAsync(1000);
    expect(reported()).toBe(sent);
    for (let second = 0; second <= 60; second++) {
      const ofSecond = lines.filter(([at]) => Math.floor(at / 1000) === second);
      expect(ofSecond.length).toBeLessThanOrEqual(11);
    }
  });

  it("names at most 20 rules, and sums up the others", async () => {
    for (let rule = 0; rule < 30; rule++) deny(2, 1, `rule-${rule}`);
    await vi.advanceTimersByTimeAsync(1000);
    const [, , summary] = lines.at(-1) as Line;
    expect(Object.keys(summary.rules as object)).toHaveLength(20);
    expect(summary).toMatchObject({ count: 59, others: 20 });
  });

  it("writes nothing with a maximum of 0", async () => {
    deny(5, 0);
    await vi.advanceTimersByTimeAsync(5000);
    expect(lines).toEqual([]);
  });

  it("goes on if the clock is set back", () => {
    deny(3);
    vi.setSystemTime(SECOND - 3_600_000);
    deny(1);
    expect(events()).toEqual(["denied", "denied", "denied-omitted", "denied"]);
  });
});

describe("the place of a request", () => {
  function placeIn(headers: Record<string, string>, cf?: unknown): Record<string, unknown> {
    const get = (name: string) => headers[name] ?? null;
    log.add(denial(), 10, { headers: { get }, cf } satisfies RequestPlace);
    const { colo, ray } = lines.at(-1)?.[2] ?? {};
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
    '8f1b2c3d4e5f6a7b-FRA","rule":"other',
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

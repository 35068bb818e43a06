import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { ReplayTotals } from "../../../cli/replay/totals.ts";
import type { RuleInput } from "../../../src/config/index.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";
import { ALL, decide, engineOf, logged } from "./requests.ts";

/** Requests, each with its start and its duration in seconds. An unknown duration is undefined. */
type Spans = readonly (readonly [start: number, seconds: number | undefined, ip?: string])[];

const requestsOf = (spans: Spans): LogRequest[] =>
  spans.map(([start, seconds, ip = "203.0.113.1"]) =>
    logged(start, { ip, durationMs: seconds === undefined ? undefined : seconds * 1000 }),
  );

function replay(spans: Spans, ...rules: Omit<RuleInput, "name">[]) {
  const engine = engineOf({ rules: rules.map((rule, at) => ({ name: `r${at}`, ...rule })) }, ALL);
  return { engine, decided: decide(engine, requestsOf(spans)) };
}

const outcomes = (...args: Parameters<typeof replay>) =>
  replay(...args).decided.map(({ outcome }) => (outcome === "limited" ? "denied" : outcome));

describe("a replay of concurrent", () => {
  it("gives a slot back at the end of its request", () => {
    const spans: Spans = [
      [0, 10],
      [1, 2],
      [2.9, 1],
      [3, 1],
      [3.5, 1, "203.0.113.2"],
      [10, 1],
    ];
    const expected = ["allowed", "allowed", "denied", "allowed", "allowed", "allowed"];
    expect(outcomes(spans, { concurrent: 2 })).toEqual(expected);
  });

  it("gives no slot to a request that is denied, also by another rule", () => {
    const spans: Spans = [
      [0, 2],
      [1, 60],
      [2, 60],
      [3, 1],
    ];
    expect(outcomes(spans, { concurrent: 1 })).toEqual(["allowed", "denied", "allowed", "denied"]);
    const shadow = { concurrent: 1, mode: "shadow" } as const;
    const { decided } = replay(spans, { limit: 1, window: "1m" }, shadow);
    const exceeded = decided.map(({ verdicts }) => verdicts.map(({ denied }) => denied));
    expect(exceeded).toEqual([
      [false, false],
      [true, true],
      [true, false],
      [true, false],
    ]);
  });

  it("keeps the slot of a long request, which a Worker renews", () => {
    const spans: Spans = [
      [0, 3600],
      [3599, 0],
      [3600, 0],
    ];
    const rule = { concurrent: 1, maxDuration: "1m" } as const;
    expect(outcomes(spans, rule)).toEqual(["allowed", "denied", "allowed"]);
  });

  it("lets requests wait for a slot in their order, as long as wait says", () => {
    const spans: Spans = [
      [0, 4],
      [1, 2],
      [2, 3],
      [3, 1],
      [4, 1],
    ];
    // The third request is open from 3 to 6, the fourth one from 4 to 5, and the last one from 5 to 6.
    const rule = { concurrent: 2, wait: "1s" } as const;
    const { engine, decided } = replay(spans, rule);
    expect(decided.map(({ outcome }) => outcome)).toEqual(decided.map(() => "allowed"));
    expect(engine.notes.at(-1)?.text).toBe(
      "3 requests wait for a turn (`wait`), for at most 1000 ms.",
    );
    expect(outcomes([...spans, [4, 1]], rule).at(-1)).toBe("denied");
    const totals = new ReplayTotals(engine);
    for (const each of decided) totals.add(each);
    expect(totals.report().rules).toMatchObject([{ denied: 0, mostOpen: 2 }]);
  });

  it("denies requests that find 250 others waiting, as an isolate does", () => {
    const spans = Array.from({ length: 253 }, () => [0, 0.0001] as const);
    const { engine, decided } = replay(spans, { concurrent: 2, wait: "1s" });
    const denied = decided.flatMap(({ outcome }, at) => (outcome === "limited" ? [at] : []));
    expect(denied).toEqual([252]);
    expect(engine.notes.at(-1)?.text).toBe(
      "250 requests wait for a turn (`wait`), for at most 13 ms.",
    );
  });

  it("lets requests wait for the next window in their order, as long as wait says", () => {
    const seconds = [0, 0.5, 0.6, 59, 59, 59.5, 60, 118, 119, 119];
    const spans: Spans = seconds.map((at) => [at, 1]);
    const rule = { limit: 2, window: "1m", maxReserved: 4, wait: "1s" } as const;
    const { engine, decided } = replay(spans, rule);
    const allowed = decided.flatMap(({ outcome }, at) => (outcome === "allowed" ? [at] : []));
    // At 60 s, the requests of 59 s pass, and at 120 s those of 119 s.
    expect(allowed).toEqual([0, 1, 3, 4, 8, 9]);
    expect(engine.notes.at(-1)?.text).toBe(
      "4 requests wait for a turn (`wait`), for at most 1000 ms.",
    );
  });

  it("charges no slot for a response", () => {
    const spans: Spans = [
      [0, 9],
      [1, 9],
      [2, 9],
    ];
    const rule = { limit: 2, window: "1m", concurrent: 5, count: { status: [200] } } as const;
    expect(outcomes(spans, rule)).toEqual(["allowed", "allowed", "denied"]);
  });

  it("notes how many requests have no duration, and ends these at once", () => {
    const spans: Spans = [
      [0, undefined],
      [0, undefined],
      [0, 1],
      [0, undefined],
    ];
    const { engine, decided } = replay(spans, { concurrent: 1 });
    const allowed = decided.map(({ outcome }) => outcome === "allowed");
    expect(allowed).toEqual([true, true, true, false]);
    expect(engine.notes).toContainEqual({
      code: "duration-not-logged",
      text: expect.stringMatching(/^3 requests have no duration/),
    });
    expect(replay(spans, { limit: 9, window: "1m" }).engine.notes).toHaveLength(0);
  });

  it("reports the most open requests of a client", () => {
    const spans: Spans = [
      [59, 9],
      [59, 9, "203.0.113.2"],
      [59, 9, "203.0.113.2"],
      [60, 9],
      [61, 9],
      [62, 9],
    ];
    const rule = { limit: 9, window: "1h", concurrent: 3 } as const;
    const { engine, decided } = replay(spans, rule);
    const totals = new ReplayTotals(engine);
    for (const each of decided) totals.add(each);
    const [report] = totals.report().rules;
    expect(report).toMatchObject({ denied: 1, mostOpen: 3, limits: "9 per 1h, 3 at once" });
  });

  it("denies as many requests as a count of the open ones", () => {
    const span = fc.tuple(fc.nat(60), fc.nat(20), fc.constantFrom("203.0.113.1", "203.0.113.2"));
    const spans = fc.array(span, { maxLength: 60 }).map((all) => all.sort(([a], [b]) => a - b));
    fc.assert(
      fc.property(spans, fc.integer({ min: 1, max: 5 }), (list, concurrent) => {
        const admitted: [start: number, seconds: number, ip: string][] = [];
        const expected = list.map(([start, seconds, ip]) => {
          const isOpen = admitted.filter(([at, long, of]) => of === ip && at + long > start);
          if (isOpen.length >= concurrent) return "denied";
          admitted.push([start, seconds, ip]);
          return "allowed";
        });
        expect(outcomes(list, { concurrent })).toEqual(expected);
      }),
      propertyRuns(300),
    );
  });

  it("keeps only the slots of open requests in memory", () => {
    const clients = Array.from({ length: 50_000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
    const { engine } = replay(
      clients.map((ip, at) => [at, 5, ip]),
      { concurrent: 1 },
    );
    expect(engine.rows.size).toBeLessThan(5000);
  });
});

describe("weir replay", () => {
  // The second request begins during the first one, although its line comes first.
  const lines = [
    { msec: 1_795_334_403, request_time: 1 },
    { msec: 1_795_334_410, request_time: 9.5 },
    { msec: 1_795_334_411, request_time: 0 },
  ].map((fields) =>
    JSON.stringify({ remote_addr: "192.0.2.1", request: "GET / HTTP/1.1", ...fields }),
  );
  const reportOf = async (...logs: string[][]) => {
    await using folder = await temporaryFolder();
    await folder.write("weir.config.json", '{"rules":[{"name":"open","concurrent":1}]}');
    const files = logs.map((_, at) => `${at}.log`);
    for (const [at, log] of logs.entries()) await folder.write(`${at}.log`, log.join("\n"));
    const { stdout } = await callWeir(
      ["replay", "--config", "weir.config.json", "--json", ...files],
      folder.path,
    );
    return JSON.parse(stdout);
  };

  it("counts open requests, from the start of each request to its end", async () => {
    const { total, rules, notes } = await reportOf(lines);
    expect(total).toMatchObject({ requests: 3, denied: 1 });
    expect(total.mostDenied[0].firstDenied).toBe("2026-11-22T08:00:02.000Z");
    expect(rules).toMatchObject([{ name: "open", denied: 1, mostOpen: 1 }]);
    expect(notes.map(({ code }: { code: string }) => code)).toEqual(["status-not-logged"]);
  });

  it("leaves concurrent out if a request of the first lines has no duration", async () => {
    const { request_time: _, ...last } = JSON.parse(lines[2] ?? "");
    const { leftOut } = await reportOf([...lines, JSON.stringify(last)]);
    expect(leftOut).toMatchObject([{ rule: "open" }]);
  });

  it("leaves concurrent out if one of the files has no durations", async () => {
    const line = '192.0.2.1 - - [22/Nov/2026:08:00:01 +0000] "GET / HTTP/1.1" 200 5';
    const { rules, notes } = await reportOf(lines, [line]);
    expect(rules).toEqual([]);
    expect(notes[0]).toMatchObject({ code: "status-not-logged" });
    expect(notes[1]).toMatchObject({ code: "concurrent-left-out", rule: "open" });
  });
});

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import type { ReplayedRequest } from "../../../cli/replay/groups.ts";
import { ReplayTotals } from "../../../cli/replay/totals.ts";
import { logged, START } from "./requests.ts";
import { decided, ruleNamed } from "./verdicts.ts";

function totalsOf(all: readonly ReplayedRequest[], rules = [ruleNamed("api")]) {
  const totals = new ReplayTotals({ rules });
  for (const each of all) totals.add(each);
  return totals.report();
}

const addressOf = (index: number) => `198.51.${index >> 8}.${index & 255}`;

describe("ReplayTotals", () => {
  it("has only zeros without a request", () => {
    const { total, rules, timeline } = totalsOf([]);
    const none = { requests: 0, allowed: 0, denied: 0, deniedShare: 0, deniedSucceeded: 0 };
    expect(total).toMatchObject({ ...none, clients: 0, clientsDenied: 0, unmatched: 0 });
    expect(rules[0]).toMatchObject({ ...none, name: "api", worstWindows: [], mostDenied: [] });
    expect(timeline).toEqual({ start: undefined, stepSeconds: 1, allowed: [], denied: [] });
  });

  it("counts requests, clients, shares, and denied requests that had succeeded", () => {
    const { total, rules } = totalsOf([
      decided(0, false),
      decided(1, true, { status: 200 }),
      decided(2, true, { status: 404 }),
      decided(3, true, { status: undefined }),
      decided(4, false, { ip: "192.0.2.1" }),
      { request: logged(5, { ip: "192.0.2.2" }), outcome: "unmatched", verdicts: [] },
    ]);
    expect(total).toMatchObject({
      ...{ requests: 6, allowed: 3, denied: 3, deniedShare: 0.5, deniedSucceeded: 1 },
      ...{ clients: 3, clientsDenied: 1, isEstimate: false, unmatched: 1 },
    });
    expect(rules[0]).toMatchObject({
      ...{ requests: 5, allowed: 2, denied: 3, deniedShare: 0.6, deniedSucceeded: 1 },
      ...{ clients: 2, clientsDenied: 1 },
    });
  });

  it("counts what a rule in shadow mode would deny for the rule, but not in total", () => {
    const shadow = { ...decided(0, true), outcome: "allowed" as const };
    const { total, rules } = totalsOf([shadow], [ruleNamed("api", "shadow")]);
    expect(total).toMatchObject({ denied: 0, clientsDenied: 0, mostDenied: [] });
    expect(rules[0]).toMatchObject({ mode: "shadow", denied: 1, clientsDenied: 1 });
  });

  it("counts a rule's clients by its key, and those of all rules by address", () => {
    const keys = ["k1", "k2", "k3"];
    const { total, rules } = totalsOf(keys.map((client, at) => decided(at, true, {}, { client })));
    expect([total.clientsDenied, rules[0]?.clientsDenied]).toEqual([1, 3]);
    expect(rules[0]?.mostDenied.map(({ client }) => client)).toEqual(keys);
  });

  it("describes the clients most denied", () => {
    const fields = {
      target: "/login?user=secret",
      method: "POST",
      headers: new Map([["user-agent", "curl/8"]]),
    };
    const { total } = totalsOf([
      decided(0, false),
      ...[1, 2, 61].map((second) => decided(second, true, { ...fields, status: 302 })),
      decided(3, true, { ip: "192.0.2.1", headers: undefined }),
    ]);
    expect(total.mostDenied).toEqual([
      {
        ...{ client: "203.0.113.7", requests: 4, denied: 3, deniedSucceeded: 3, error: 0 },
        firstDenied: "2026-01-01T00:00:01.000Z",
        lastDenied: "2026-01-01T00:01:01.000Z",
        userAgents: [{ text: "curl/8", count: 3 }],
        paths: [{ text: "POST /login", count: 3 }],
      },
      expect.objectContaining({ client: "192.0.2.1", userAgents: [] }),
    ]);
  });

  it("lists at most 20 clients", () => {
    const all = Array.from({ length: 50 }, (_, at) => decided(at, true, { ip: addressOf(at) }));
    const { total, rules } = totalsOf(all);
    expect([total.mostDenied.length, rules[0]?.mostDenied.length]).toEqual([20, 20]);
    expect(total.clientsDenied).toBe(50);
  });

  it("counts requests without an address, but not as clients", () => {
    const { total, rules } = totalsOf([decided(0, true, { ip: undefined }, { client: "key" })]);
    expect(total).toMatchObject({ requests: 1, denied: 1, clients: 0, mostDenied: [] });
    expect(rules[0]).toMatchObject({ clients: 1, clientsDenied: 1 });
  });

  it("has the same steps in all timelines", () => {
    const other = decided(7200, true, {}, { rule: 1 });
    const { timeline, rules } = totalsOf(
      [decided(0, false), other],
      ["a", "b"].map((name) => ruleNamed(name)),
    );
    expect(timeline.start).toBe(new Date(START).toISOString());
    for (const each of [timeline, ...rules.map((rule) => rule.timeline)]) {
      expect(each).toMatchObject({ start: timeline.start, stepSeconds: timeline.stepSeconds });
      expect([each.allowed.length, each.denied.length]).toEqual([121, 121]);
    }
    expect([timeline.allowed[0], timeline.denied[120]]).toEqual([1, 1]);
    expect(rules[1]?.timeline.denied[120]).toBe(1);
  });
});

describe("with more clients than a table holds", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");

  function memory(): number {
    // The first run ends the buffers' objects, and the second one frees their memory.
    for (let run = 0; run < 3; run++) collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  }

  it("ReplayTotals estimates clients within 2 %, and needs no more memory for more clients", () => {
    const maxClients = 40_000;
    const totals = new ReplayTotals({ rules: [ruleNamed("api")] }, undefined, true, maxClients);
    const add = (from: number, to: number) => {
      for (let index = from; index < to; index++) {
        totals.add(decided(index / 100, index % 50 === 0, { ip: addressOf(index) }));
      }
    };
    add(0, 100_000);
    const before = memory();
    add(100_000, 300_000);
    // The table holds from 20,000 to 40,000 clients, which takes a few MB.
    expect(memory() - before).toBeLessThan(10_000_000);
    const { total } = totals.report();
    expect(total.isEstimate).toBe(true);
    expect(Math.abs(total.clients / 300_000 - 1)).toBeLessThan(0.02);
    // There are few denied clients, so their number is exact.
    const exact = { clientsDenied: 6000, isDeniedEstimate: false };
    expect(total).toMatchObject({ requests: 300_000, denied: 6000, ...exact });
  });
});

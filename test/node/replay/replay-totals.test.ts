import { describe, expect, it } from "vitest";
import type { ReplayedRequest } from "../../../cli/replay/engine.ts";
import { ReplayTotals } from "../../../cli/replay/totals.ts";
import { logged } from "./requests.ts";
import { decided, ruleNamed } from "./verdicts.ts";

function totalsOf(all: readonly ReplayedRequest[], rules = [ruleNamed("api")]) {
  const totals = new ReplayTotals({ rules });
  for (const each of all) totals.add(each);
  return totals.report();
}

const addressOf = (index: number) => `198.51.${index >> 8}.${index & 255}`;

describe("ReplayTotals", () => {
  it("has only zeros without a request", () => {
    const { total, rules } = totalsOf([]);
    const none = { requests: 0, allowed: 0, denied: 0, deniedShare: 0, deniedSucceeded: 0 };
    expect(total).toMatchObject({ ...none, clients: 0, clientsDenied: 0, unmatched: 0 });
    expect(rules[0]).toMatchObject({ ...none, name: "api", mostDenied: [] });
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
      ...{ clients: 3, clientsDenied: 1, unmatched: 1 },
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
    const { total } = totalsOf([
      decided(0, false),
      ...[1, 2, 61].map((second) => decided(second, true, { status: 302 })),
      decided(3, true, { ip: "192.0.2.1" }),
    ]);
    expect(total.mostDenied).toEqual([
      {
        ...{ client: "203.0.113.7", requests: 4, denied: 3, deniedSucceeded: 3 },
        firstDenied: "2026-01-01T00:00:01.000Z",
        lastDenied: "2026-01-01T00:01:01.000Z",
      },
      expect.objectContaining({ client: "192.0.2.1" }),
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

  it("counts no clients after as many as memory should hold, with a note", () => {
    const totals = new ReplayTotals({ rules: [ruleNamed("api")] }, true, 600);
    for (let at = 0; at < 2000; at++) {
      totals.add(decided(at, true, { ip: addressOf(at % 1000) }));
    }
    expect(totals.report().total).toMatchObject({ requests: 2000, denied: 2000, clients: 600 });
    expect(totals.notes()).toMatchObject([
      {
        code: "too-many-clients",
        text: expect.stringContaining("800 requests have a later client"),
      },
    ]);
  });
});

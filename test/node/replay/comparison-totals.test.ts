import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { ReplayedRequest } from "../../../cli/replay/groups.ts";
import { ReplayTotals } from "../../../cli/replay/totals.ts";
import { logged } from "./requests.ts";
import { ruleNamed, verdictOn } from "./verdicts.ts";

/** A request with the verdicts of the other configuration, and of the configuration. */
interface Compared {
  readonly request: LogRequest;
  readonly before: boolean;
  readonly now: boolean;
}

function compared(second: number, verdicts: "--" | "-d" | "d-" | "dd", fields = {}): Compared {
  const [before, now] = [...verdicts].map((letter) => letter === "d");
  return { request: logged(second, fields), before: before === true, now: now === true };
}

function replayed(request: LogRequest, denied: boolean): ReplayedRequest {
  const outcome = denied ? "limited" : "allowed";
  return { request, outcome, verdicts: [verdictOn(request, { denied })] };
}

const ONE_RULE = { rules: [ruleNamed("api")] };

function reportOf(all: readonly Compared[], maxClients?: number) {
  const totals = new ReplayTotals(ONE_RULE, ONE_RULE, true, maxClients);
  for (const { request, now, before } of all) {
    totals.add(replayed(request, now), replayed(request, before));
  }
  return { ...totals.report(), comparison: totals.comparison?.report() };
}

const SAMPLE = [
  compared(0, "--"),
  compared(1, "-d", {
    ip: "192.0.2.1",
    status: 200,
    target: "/a?q",
    headers: new Map([["user-agent", "curl"]]),
  }),
  compared(2, "-d", { ip: "192.0.2.1", status: 500 }),
  compared(3, "d-", { ip: "192.0.2.2" }),
  compared(4, "dd", { ip: "192.0.2.3" }),
  compared(5, "-d", { ip: "192.0.2.3" }),
  compared(6, "dd", { ip: "192.0.2.4" }),
  compared(7, "d-", { ip: "192.0.2.4" }),
  compared(8, "dd", { ip: "192.0.2.5" }),
];

describe("ComparisonTally", () => {
  it("compares request by request and client by client", () => {
    const { comparison } = reportOf(SAMPLE);
    expect(comparison).toMatchObject({
      before: { requests: 9, denied: 5, deniedSucceeded: 5, clients: 6, clientsDenied: 4 },
      requests: {
        ...{ allowedByBoth: 1, deniedByBoth: 3, newlyDenied: 3, newlyDeniedSucceeded: 2 },
        newlyAllowed: 2,
      },
      clients: {
        newlyDenied: 1,
        noLongerDenied: 1,
        deniedMore: 1,
        deniedLess: 1,
        isEstimate: false,
      },
    });
    const { mostNewlyDenied = [], mostNewlyAllowed = [] } = comparison ?? {};
    expect(mostNewlyDenied[0]).toEqual({
      ...{ client: "192.0.2.1", requests: 2, deniedBefore: 0, denied: 2, newlyDeniedSucceeded: 1 },
      error: 0,
      userAgents: [{ text: "curl", count: 1 }],
      paths: expect.arrayContaining([{ text: "GET /a", count: 1 }]),
    });
    expect(mostNewlyDenied.map(({ client }) => client)).toEqual(["192.0.2.1", "192.0.2.3"]);
    expect(mostNewlyAllowed).toMatchObject([
      { client: "192.0.2.2", deniedBefore: 1, denied: 0 },
      { client: "192.0.2.4", deniedBefore: 2, denied: 1 },
    ]);
  });

  it("finds no difference between equal verdicts", () => {
    const equal = Array.from({ length: 100 }, (_, at) => compared(at, at % 3 === 0 ? "dd" : "--"));
    const { total, comparison } = reportOf(equal);
    const { mostDenied: _clients, unmatched: _unmatched, ...counts } = total;
    expect(comparison).toMatchObject({
      before: counts,
      requests: { newlyDenied: 0, newlyDeniedSucceeded: 0, newlyAllowed: 0 },
      clients: { newlyDenied: 0, noLongerDenied: 0, deniedMore: 0, deniedLess: 0 },
      ...{ mostNewlyDenied: [], mostNewlyAllowed: [] },
    });
  });

  it("estimates newly denied clients if there are very many", () => {
    const clients = 30_000;
    const all = Array.from({ length: clients }, (_, index) =>
      compared(index / 1000, index % 3 === 0 ? "-d" : "dd", {
        ip: `198.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
      }),
    );
    const { comparison } = reportOf(all, 10_000);
    const { newlyDenied = 0, noLongerDenied, isEstimate } = comparison?.clients ?? {};
    expect({ isEstimate, noLongerDenied }).toEqual({ isEstimate: true, noLongerDenied: 0 });
    expect(Math.abs(newlyDenied / (clients / 3) - 1)).toBeLessThan(0.03);
    expect(comparison?.requests.newlyDenied).toBe(clients / 3);
  });

  it("compares requests without an address, but no clients", () => {
    const { comparison } = reportOf([compared(0, "-d", { ip: undefined })]);
    expect(comparison?.requests.newlyDenied).toBe(1);
    expect(comparison).toMatchObject({ clients: { newlyDenied: 0 }, mostNewlyDenied: [] });
  });
});

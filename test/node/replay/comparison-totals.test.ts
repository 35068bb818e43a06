import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { ReplayedRequest } from "../../../cli/replay/engine.ts";
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

function reportOf(all: readonly Compared[]) {
  const totals = new ReplayTotals(ONE_RULE);
  for (const { request, now, before } of all) {
    totals.add(replayed(request, now), replayed(request, before));
  }
  return { ...totals.report(), comparison: totals.comparison() };
}

const SAMPLE = [
  compared(0, "--"),
  compared(1, "-d", { ip: "192.0.2.1", status: 200 }),
  compared(2, "-d", { ip: "192.0.2.1", status: 500 }),
  compared(3, "d-", { ip: "192.0.2.2" }),
  compared(4, "dd", { ip: "192.0.2.3" }),
  compared(5, "-d", { ip: "192.0.2.3" }),
  compared(6, "dd", { ip: "192.0.2.4" }),
  compared(7, "d-", { ip: "192.0.2.4" }),
  compared(8, "dd", { ip: "192.0.2.5" }),
];

describe("a comparison", () => {
  it("compares request by request and client by client", () => {
    const { comparison } = reportOf(SAMPLE);
    expect(comparison).toMatchObject({
      before: { denied: 5, clientsDenied: 4 },
      requests: {
        ...{ allowedByBoth: 1, deniedByBoth: 3, newlyDenied: 3, newlyDeniedSucceeded: 2 },
        newlyAllowed: 2,
      },
      clients: { newlyDenied: 1, noLongerDenied: 1 },
    });
    const [first, second] = comparison.mostNewlyDenied;
    expect(first).toEqual({
      ...{ client: "192.0.2.1", requests: 2, deniedBefore: 0, denied: 2 },
      ...{ newlyDenied: 2, newlyDeniedSucceeded: 1 },
    });
    expect(second).toMatchObject({ client: "192.0.2.3", newlyDenied: 1 });
  });

  it("finds no difference between equal verdicts", () => {
    const equal = Array.from({ length: 100 }, (_, at) => compared(at, at % 3 === 0 ? "dd" : "--"));
    const { total, comparison } = reportOf(equal);
    expect(comparison).toMatchObject({
      before: { denied: total.denied, clientsDenied: total.clientsDenied },
      requests: { newlyDenied: 0, newlyDeniedSucceeded: 0, newlyAllowed: 0 },
      clients: { newlyDenied: 0, noLongerDenied: 0 },
      mostNewlyDenied: [],
    });
  });

  it("compares requests without an address, but no clients", () => {
    const { comparison } = reportOf([compared(0, "-d", { ip: undefined })]);
    expect(comparison.requests.newlyDenied).toBe(1);
    expect(comparison).toMatchObject({ clients: { newlyDenied: 0 }, mostNewlyDenied: [] });
  });
});

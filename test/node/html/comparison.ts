import type { ComparedClient, Comparison } from "../../../cli/replay/report.ts";
import { countsOf, deniedClientOf, timelineOf } from "./fixtures.ts";

function comparedClientOf(index: number): ComparedClient {
  const { client, requests, denied, deniedSucceeded, error, userAgents, paths } = deniedClientOf(
    index,
    900,
  );
  const compared = { client, requests, denied, newlyDeniedSucceeded: deniedSucceeded, error };
  return { ...compared, deniedBefore: index % 4 ? 0 : Math.floor(denied / 3), userAgents, paths };
}

export const COMPARISON: Comparison = {
  against: "main/weir.config.ts",
  notes: [{ code: "no-country", text: "The log does not state countries." }],
  leftOut: [],
  before: { ...countsOf(timelineOf(8000), 51_204), clientsDenied: 770 },
  costBefore: {
    unit: "Redis commands",
    count: 3_211_004,
    calls: 1_003_001,
    dollars: 6.42,
    dollarsPer30Days: 96.33,
  },
  requests: {
    allowedByBoth: 1_170_221,
    deniedByBoth: 9_871,
    newlyDenied: 14_211,
    newlyDeniedSucceeded: 12_004,
    newlyAllowed: 233,
  },
  clients: {
    newlyDenied: 104,
    noLongerDenied: 21,
    deniedMore: 312,
    deniedLess: 9,
    isEstimate: false,
  },
  rules: [
    {
      ...{ rule: "search", change: "changed", modeBefore: "enforce", mode: "enforce" },
      ...{ overLimitBefore: 9_004, overLimit: 22_811, deniedBefore: 9_004, denied: 22_811 },
    },
    {
      ...{ rule: "login", change: "same", modeBefore: "enforce", mode: "enforce" },
      ...{ overLimitBefore: 1_040, overLimit: 1_040, deniedBefore: 1_040, denied: 1_040 },
    },
    {
      ...{ rule: "exports", change: "added", modeBefore: undefined, mode: "shadow" },
      ...{ overLimitBefore: undefined, overLimit: 231, deniedBefore: undefined, denied: 0 },
    },
    {
      ...{ rule: "legacy", change: "removed", modeBefore: "enforce", mode: undefined },
      ...{ overLimitBefore: 60, overLimit: undefined, deniedBefore: 60, denied: undefined },
    },
  ],
  mostNewlyDenied: Array.from({ length: 20 }, (_, index) => comparedClientOf(index)),
  mostNewlyAllowed: [
    { ...comparedClientOf(3), deniedBefore: 60, denied: 2, newlyDeniedSucceeded: 0 },
  ],
};

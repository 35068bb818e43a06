import type { RuleView } from "../../../src/admin/operations.ts";
import type { Totals } from "../../../src/control/protocol.ts";
import { LATENCY_BOUNDS_MS } from "../../../src/statistics/sums.ts";

/** Returns the view of an enforced rule. */
export function ruleView(name: string, fields: Partial<RuleView> = {}): RuleView {
  return {
    name,
    key: "ip",
    mode: "enforce",
    configuredMode: "enforce",
    onError: "open",
    limits: [{ policy: name, limit: 5, window: "1m" }],
    hasTiers: false,
    hasBan: false,
    match: "every request",
    ...fields,
  };
}

const NO_OUTCOMES = {
  requests: 0,
  allowed: 0,
  limited: 0,
  marked: 0,
  ahead: 0,
  over: 0,
  undecided: 0,
  shadowLimited: 0,
  peak: 0,
};

/** Totals in which every number differs from 0 and from the others. */
export const TOTALS: Totals = {
  since: 1_700_000_000_500,
  requests: {
    requests: 117,
    unmatched: 20,
    refused: 2,
    allowed: 80,
    limited: 10,
    undecidedPassed: 4,
    undecidedDenied: 1,
    fromMemory: 60,
    countedLocally: 3,
    ahead: 15,
    over: 6,
    waited: 13,
    waitedMs: 4500,
  },
  store: {
    calls: 31,
    failures: 5,
    commands: 93,
    latency: [1, 0, 2, ...LATENCY_BOUNDS_MS.slice(3).map(() => 1), 7],
    latencyMs: 12_345,
  },
  rules: {
    login: { ...NO_OUTCOMES, requests: 50, allowed: 41, limited: 9 },
    trial: { ...NO_OUTCOMES, requests: 30, shadowLimited: 6 },
    reads: { ...NO_OUTCOMES, requests: 22, allowed: 21, ahead: 15, over: 6 },
    plan: { ...NO_OUTCOMES, requests: 25, allowed: 20, marked: 5 },
    stream: { ...NO_OUTCOMES, requests: 14, allowed: 13, openPeak: 11 },
    removed: { ...NO_OUTCOMES, requests: 8, allowed: 7, undecided: 1 },
  },
  isolates: 12,
  openBreakers: 3,
  overrides: 4,
};

export const RULES: readonly RuleView[] = [
  ruleView("login"),
  ruleView("search", {
    key: "header:x-api-key | ip",
    limits: [
      { policy: "search/1m", limit: 60, window: "1m" },
      { policy: "search/month", limit: 9000, window: "month" },
    ],
  }),
  ruleView("trial", { mode: "enforce", configuredMode: "shadow", key: "global" }),
  ruleView("plan", { mode: "mark", configuredMode: "mark" }),
  ruleView("reads", { async: true }),
  ruleView("stream", {
    limits: [{ policy: "stream", limit: 16, window: "concurrent", concurrent: true }],
  }),
];

import type { LogSummary } from "../../../cli/logs/progress.ts";
import type {
  Counts,
  DeniedClient,
  Frequent,
  ReplayReport,
  RuleReport,
  Timeline,
} from "../../../cli/replay/report.ts";

// Reports in the sizes of real ones. All numbers follow from the index, so the same call has the same report.

const START = Date.parse("2026-11-20T00:00:00Z");
const STEP_S = 720;
const STEPS = 240;
const PATHS = ["GET /search", "POST /login", "GET /api/v1/products", "GET /articles/limits"];
const AGENTS = [
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Mobile/15E148 Safari/604.1",
  "python-requests/2.33.0",
];

export const iso = (seconds: number) =>
  new Date(START + seconds * 1000).toISOString().replace(".000", "");

export const LOG: LogSummary = {
  files: ["logs/access.log-20261120.gz", "logs/access.log"],
  formats: ["combined", "combined"],
  lines: 1_204_512,
  requests: 1_204_331,
  broken: 12,
  brokenLines: Array.from({ length: 10 }, (_, index) => ({
    file: "logs/access.log",
    line: 4711 + index,
    reason:
      "The time 32/Nov/2026 is no date; expected is a time such as 20/Nov/2026:10:00:00 +0000",
  })),
  late: 3,
  outside: 160,
  ignored: 6,
  from: iso(0),
  to: iso(STEP_S * STEPS - 1),
};

export const EMPTY_LOG: LogSummary = {
  files: ["empty.log"],
  formats: [],
  lines: 0,
  requests: 0,
  broken: 0,
  brokenLines: [],
  late: 0,
  outside: 0,
  ignored: 0,
};

/** Requests that rise and fall with the hours of the day, with an attack on the second day. */
export function timelineOf(peak: number): Timeline {
  const steps = Array.from({ length: STEPS }, (_, index) => index);
  const allowed = steps.map((index) =>
    Math.round(
      peak * (0.55 - 0.45 * Math.cos((index / 120) * 2 * Math.PI) + ((index * 7) % 11) / 110),
    ),
  );
  const denied = steps.map((index) =>
    index >= 150 && index < 164
      ? Math.round(peak * (0.2 + ((index * 5) % 7) / 9))
      : index % 40 === 7
        ? 1
        : 0,
  );
  return { start: iso(0), stepSeconds: STEP_S, allowed, denied };
}

export const EMPTY_TIMELINE: Timeline = {
  start: undefined,
  stepSeconds: 60,
  allowed: [],
  denied: [],
};

export const EMPTY_COUNTS: Counts = {
  requests: 0,
  allowed: 0,
  denied: 0,
  deniedShare: 0,
  deniedSucceeded: 0,
  clients: 0,
  clientsDenied: 0,
  isEstimate: false,
  isDeniedEstimate: false,
};

export function countsOf(timeline: Timeline, clients: number): Counts {
  const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0);
  const [allowed, denied] = [sum(timeline.allowed), sum(timeline.denied)];
  return {
    requests: allowed + denied,
    allowed,
    denied,
    deniedShare: denied / (allowed + denied),
    deniedSucceeded: Math.round(denied * 0.83),
    clients,
    clientsDenied: Math.ceil(clients / 60),
    isEstimate: false,
    isDeniedEstimate: false,
  };
}

const frequent = (texts: readonly string[], total: number): Frequent[] =>
  texts.slice(0, 3).map((text, index) => ({ text, count: Math.ceil(total / 2 ** (index + 1)) }));

export const addressOf = (index: number) =>
  index % 4 === 3
    ? `2001:db8:${(index * 4093 + 17).toString(16)}:77::/64`
    : `203.0.113.${(index * 37 + 7) % 250}`;

export function deniedClientOf(index: number, scale: number): DeniedClient {
  const denied = Math.ceil(scale / (index + 1.4));
  return {
    client: addressOf(index),
    requests: Math.ceil(denied * (1.2 + (index % 5))),
    denied,
    deniedSucceeded: index % 3 === 2 ? 0 : Math.floor(denied * 0.9),
    error: 0,
    firstDenied: iso(150 * STEP_S + index * 61),
    lastDenied: iso(163 * STEP_S + index * 13),
    userAgents: frequent(AGENTS.slice(index % 3), denied),
    paths: frequent(PATHS.slice(index % 2), denied),
  };
}

const deniedClients = (count: number, scale: number) =>
  Array.from({ length: count }, (_, index) => deniedClientOf(index, scale));

/** The rule of an index. Every third rule denies nothing, some are in shadow mode. */
export function ruleOf(index: number): RuleReport {
  const peak = Math.round(4000 / (index + 1)) + 3;
  const full = timelineOf(peak);
  const isQuiet = index % 3 === 2;
  const timeline = isQuiet ? { ...full, denied: full.denied.map(() => 0) } : full;
  const counts = countsOf(timeline, Math.round(5200 / (index + 1)) + 1);
  return {
    name: index === 0 ? "search" : `rule-${index + 1}`,
    mode: index % 7 === 3 ? "shadow" : index % 7 === 6 ? "mark" : "enforce",
    key: index % 2 ? "ip" : "header:x-api-key | ip",
    limits: "60 per 1m, 1000 per 1h",
    match: PATHS[index % PATHS.length] ?? "",
    ...counts,
    ...(isQuiet && { deniedSucceeded: 0, clientsDenied: 0 }),
    worstWindows: isQuiet
      ? []
      : Array.from({ length: 10 }, (_, each) => ({
          policy: "search/1m",
          start: iso(150 * STEP_S + each * 60),
          end: iso(150 * STEP_S + (each + 1) * 60),
          requests: peak - each,
          denied: Math.max(1, Math.round((peak - each) * 0.8)),
        })),
    mostDenied: isQuiet ? [] : deniedClients(Math.min(20, counts.clientsDenied), peak),
    timeline,
  };
}

/** The report of a replay of two days. */
export function replayOf(rules: number, changes: Partial<ReplayReport> = {}): ReplayReport {
  const timeline = timelineOf(9000);
  const total = countsOf(timeline, 51_204);
  return {
    version: 1,
    log: LOG,
    config: "weir.config.ts",
    failed: [],
    notes: [
      {
        code: "not-logged",
        rule: "search",
        text: "The log does not state x-api-key. Clients count by their addresses, so several users behind one address count as one.",
      },
      {
        code: "no-country",
        text: "The log does not state countries. Conditions on countries count as unknown.",
      },
    ],
    total: { ...total, unmatched: 18_220, mostDenied: deniedClients(20, 4000) },
    cost: {
      unit: "Redis commands",
      count: 3_612_993,
      calls: 1_204_331,
      dollars: 7.225986,
      dollarsPer30Days: 108.39,
    },
    rules: Array.from({ length: rules }, (_, index) => ruleOf(index)),
    leftOut: [
      {
        rule: "partners",
        reason:
          "Its key reads claim:sub, and the log does not state tokens. Use --missing as-absent to count them as absent.",
      },
    ],
    timeline,
    ...changes,
  };
}

export const EMPTY_REPLAY: ReplayReport = {
  version: 1,
  log: EMPTY_LOG,
  config: "weir.config.ts",
  failed: [],
  notes: [],
  total: { ...EMPTY_COUNTS, unmatched: 0, mostDenied: [] },
  cost: undefined,
  rules: [
    {
      ...ruleOf(0),
      ...EMPTY_COUNTS,
      worstWindows: [],
      mostDenied: [],
      timeline: EMPTY_TIMELINE,
    },
  ],
  leftOut: [],
  timeline: EMPTY_TIMELINE,
};

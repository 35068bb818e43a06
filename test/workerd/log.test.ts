import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import page from "../../docs/responses.md?raw";
import type { Mode, Rule } from "../../src/config/rule.ts";
import * as log from "../../src/gateway/log.ts";
import {
  type Allowed,
  type Limited,
  NO_ENFORCED_RULE,
  type Quota,
  type RuleVerdict,
  toUndecided,
} from "../../src/limiter/decision.ts";
import { STORE_FAILURES, StoreError } from "../../src/stores/store.ts";
import { verdictOn } from "../verdicts.ts";

/** The log lines that docs/responses.md lists. */
const documentedLines = [...page.matchAll(/^- `(\{"weir":.*\})`$/gm)].map(([, line = ""]) => line);

/** Returns the causes in the table of docs/responses.md. */
function documentedCauses(): string[] {
  const [, table = ""] = page.split("| `cause` |");
  const rows = table.split("\n\n")[0]?.split("\n").slice(2).filter(Boolean) ?? [];
  return rows.map((row) => /^\| `([^`]*)` \|/.exec(row)?.[1] ?? row);
}

/** Returns a pattern for log lines from a documented line, which may contain alternatives. */
function patternOf(line: string): RegExp {
  const parts = line.split("…");
  const alternatives = parts.map((part) =>
    part.replace(/[{}]/g, "\\$&").replace(/"[^"]*"(\|"[^"]*")+/g, (choice) => `(${choice})`),
  );
  // A value is a text, a number, or an object with numbers.
  return new RegExp(`^${alternatives.join('("[^"]*"|[\\d.]+|\\{[^{}]*\\})')}$`);
}

const IDENTITY = "A1b2C3d4E5f6G7h8I9j0-_";
const LIMITED: Limited = limitedBy("login");
const REQUEST = {
  headers: new Headers({ "cf-ray": "8f1b2c3d4e5f6a7b-FRA" }),
  cf: { colo: "FRA" },
};

function appliedRule(name: string, mode: Mode = "enforce") {
  return { rule: { name, mode } as Rule, windows: [], identity: IDENTITY };
}

function limitedBy(name: string): Limited {
  const deniedBy = verdictOn(appliedRule(name), "denied");
  return { outcome: "limited", quotas: [], verdicts: [deniedBy], retryAfterMs: 1000, deniedBy };
}

/** A request that passes, with the verdict of a rule in another mode than `enforce`. */
function passed(mode: Mode, fields: Partial<RuleVerdict>): Allowed {
  const says = fields.failure ? "undecided" : "denied";
  return { ...NO_ENFORCED_RULE, verdicts: [verdictOn(appliedRule("login", mode), says, fields)] };
}

let lines: string[];
let now = 0;

// The clock advances by ten seconds per call, because some lines are logged at most once in ten
// seconds.
function nextTime(): number {
  now += 10_000;
  return now;
}

beforeEach(() => {
  vi.spyOn(Date, "now").mockImplementation(nextTime);
  lines = [];
  for (const level of ["log", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line) => void lines.push(line));
  }
});

afterEach(() => {
  vi.restoreAllMocks();
});

const failures = [
  ...STORE_FAILURES.map((failure) => new StoreError(failure, "some detail")),
  new TypeError("a bug"),
];

/** The exported functions of log.ts that log an event. */
type LogFunction = Exclude<Extract<keyof typeof log, `log${string}`>, "logLine">;

/** Calls each exported function of log.ts with every kind of value that it accepts. */
const calls: Record<LogFunction, () => void> = {
  logDecision() {
    const quotas = [{ policy: "login/1m", violated: true, retryAfterMs: 1000 } as Quota];
    log.logDecision(passed("shadow", { quotas }), 10);
    log.logDecision(LIMITED, 10);
    log.logDecision(LIMITED, 10, REQUEST);
    for (const failure of failures) {
      const storeFailure = toUndecided(failure, []);
      const { cause, detail } = storeFailure;
      log.logDecision(storeFailure, 10);
      log.logDecision({ ...storeFailure, open: false }, 10);
      log.logDecision({ ...NO_ENFORCED_RULE, storeFailure }, 10);
      log.logDecision({ ...LIMITED, storeFailure }, 10);
      for (const mode of ["shadow", "mark"] as const) {
        log.logDecision(passed(mode, { failure: { cause, detail } }), 10);
      }
    }
    // With one line a second, all but the first denial of each second have no line of their own.
    vi.mocked(Date.now).mockReturnValue(now + 10_000);
    for (let request = 0; request < 3; request++) log.logDecision(LIMITED, 1);
    for (let rule = 0; rule < 25; rule++) log.logDecision(limitedBy(`rule-${rule}`), 1);
    vi.mocked(Date.now).mockReturnValue(now + 20_000);
    for (let request = 0; request < 3; request++) log.logDecision(LIMITED, 1);
    vi.mocked(Date.now).mockReturnValue(now + 30_000);
    log.logDecision(LIMITED, 1);
    vi.mocked(Date.now).mockImplementation(nextTime);
  },
  logUndecided() {
    for (const failure of failures) log.logUndecided(toUndecided(failure, []));
  },
  logCustomKeyFailed() {
    log.logCustomKeyFailed("plan", "timeout");
    log.logCustomKeyFailed("plan", "threw");
  },
  logUnreadableLimit() {
    for (const cause of ["timeout", "threw", "missing", "invalid"] as const) {
      log.logUnreadableLimit("custom:quota", cause, "AAAAAAAAAAAAAAAAAAAAAA");
    }
  },
  logUnreadableCost() {
    for (const cause of [
      "timeout",
      "threw",
      "missing",
      "invalid",
      "no-response",
      "broken-off",
    ] as const) {
      log.logUnreadableCost("api", "body:bytes", cause);
    }
  },
  logQuotaUsed() {
    const names = { rule: "plan", policy: "plan/month", client: IDENTITY, tier: "pro" };
    const event = { ...names, share: 0.8, used: 80, limit: 100, resetAt: now };
    for (const mode of ["enforce", "shadow", "mark"] as const) log.logQuotaUsed({ mode, ...event });
  },
  logEventFailed() {
    log.logEventFailed("plan");
  },
  logCustomResponseFailed() {
    for (const cause of ["timeout", "threw", "invalid", "body-failed", "too-long"] as const) {
      log.logCustomResponseFailed("page", cause);
    }
  },
  logMode() {
    log.logMode("shadow");
    log.logMode("off");
  },
  logBreaker() {
    for (const scope of ["store", "object"] as const) {
      log.logBreaker("open", scope);
      log.logBreaker("closed", scope);
    }
  },
  logControlFailed() {
    log.logControlFailed("upload", "timeout");
    log.logControlFailed("load-overrides", "outdated");
  },
  logMisconfigured: () => log.logMisconfigured("no binding COUNTERS"),
};

describe("the log in docs/responses.md", () => {
  it("is tested with every function that logs", () => {
    const names = Object.keys(log).filter((name) => name.startsWith("log") && name !== "logLine");
    expect(Object.keys(calls).sort()).toEqual(names.sort());
  });

  it("has every line that is logged, and no other line", () => {
    for (const call of Object.values(calls)) call();
    const patterns = documentedLines.map(patternOf);
    expect(patterns.length).toBeGreaterThan(0);
    const unknown = lines.filter((line) => !patterns.some((pattern) => pattern.test(line)));
    expect(unknown).toEqual([]);
    const unused = patterns.filter((pattern) => !lines.some((line) => pattern.test(line)));
    expect(unused).toEqual([]);
  });

  it("has every value that a field can have, and no other value", () => {
    for (const call of Object.values(calls)) call();
    const logged = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      // The documented lines list all causes of these events. They differ from the causes of the store.
      .filter(({ weir }) => !/^(custom-|cost-|limit-)/.test(String(weir)));
    const valuesOf = (field: string) =>
      [...new Set(logged.map((line) => line[field]).filter((value) => value !== undefined))].sort();
    expect(valuesOf("cause")).toEqual(documentedCauses().sort());
    const [undecidedLine = ""] = documentedLines;
    const requests = /"requests":(.*)\}/.exec(undecidedLine)?.[1]?.split("|");
    expect(valuesOf("requests")).toEqual(requests?.map((each) => JSON.parse(each)).sort());
  });
});

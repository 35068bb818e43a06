import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import page from "../../docs/responses.md?raw";
import { NO_ENFORCED_RULE, type ShadowDenial, toUndecided } from "../../src/limiter/decision.ts";
import * as log from "../../src/log.ts";
import { STORE_FAILURES, StoreError } from "../../src/stores/store-error.ts";

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
  return new RegExp(`^${alternatives.join('"[^"]*"')}$`);
}

let lines: string[];
let now = 0;

beforeEach(() => {
  // The clock advances by ten seconds per call, because some lines are logged at most once in ten
  // seconds.
  vi.spyOn(Date, "now").mockImplementation(() => (now += 10_000));
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

/** Calls each exported function of log.ts with every kind of value that it accepts. */
const calls: Record<keyof typeof log, () => void> = {
  logDecision() {
    const quota = { policy: "shadowed" } as ShadowDenial;
    log.logDecision({ ...NO_ENFORCED_RULE, shadow: [quota] });
    for (const failure of failures) {
      const storeFailure = toUndecided(failure, []);
      const { cause, detail } = storeFailure;
      log.logDecision(storeFailure);
      log.logDecision({ ...storeFailure, open: false });
      log.logDecision({ ...NO_ENFORCED_RULE, shadow: [], storeFailure });
      log.logDecision({ ...NO_ENFORCED_RULE, shadow: [{ policy: "shadowed", cause, detail }] });
      const undecidedMarks = [{ policy: "marked", cause, detail }];
      log.logDecision({ ...NO_ENFORCED_RULE, shadow: [], undecidedMarks });
    }
  },
  logCustomKeyFailed() {
    log.logCustomKeyFailed("plan", "timeout");
    log.logCustomKeyFailed("plan", "threw");
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
  logMisconfigured: () => log.logMisconfigured("no binding COUNTERS"),
};

describe("the log in docs/responses.md", () => {
  it("is tested with every function that logs", () => {
    expect(Object.keys(calls).sort()).toEqual(Object.keys(log).sort());
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
      .filter(({ weir }) => !/^(custom-|cost-)/.test(String(weir)));
    const valuesOf = (field: string) =>
      [...new Set(logged.map((line) => line[field]).filter((value) => value !== undefined))].sort();
    expect(valuesOf("cause")).toEqual(documentedCauses().sort());
    const [undecidedLine = ""] = documentedLines;
    const requests = /"requests":(.*)\}/.exec(undecidedLine)?.[1]?.split("|");
    expect(valuesOf("requests")).toEqual(requests?.map((each) => JSON.parse(each)).sort());
  });
});

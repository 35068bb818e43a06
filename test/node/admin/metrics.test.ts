import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { metricsOf, metricsText, VERSION } from "../../../src/admin/metrics.ts";
import type { Totals } from "../../../src/control/protocol.ts";
import { RULES, ruleView, TOTALS } from "../support/metrics.ts";
import { parseOpenMetrics, toOpenMetrics } from "../support/openmetrics.ts";
import { hasPromtool, promtool } from "../support/promtool.ts";

const text = (totals: Totals = TOTALS, rules = RULES) => metricsText(metricsOf(totals, rules));

/** Returns the samples of a metric, as `label=value,…: value`. */
function samples(name: string, totals: Totals = TOTALS, rules = RULES): string[] {
  const metric = parseOpenMetrics(toOpenMetrics(text(totals, rules))).get(name);
  return (metric?.samples ?? []).map(({ labels, value }) => {
    const pairs = Object.entries(labels).map(([label, each]) => `${label}=${each}`);
    return `${pairs.join(",")}: ${value}`;
  });
}

describe("the metrics", () => {
  it("have the type of each metric", () => {
    const metrics = [...parseOpenMetrics(toOpenMetrics(text())).values()];
    expect(metrics.map(({ name, type }) => `${name} ${type}`)).toEqual([
      "weir_info gauge",
      "weir_statistics_start_timestamp_seconds gauge",
      "weir_requests counter",
      "weir_requests_from_memory counter",
      "weir_requests_counted_locally counter",
      "weir_rule_requests counter",
      "weir_rule_outcomes counter",
      "weir_rule_info gauge",
      "weir_rule_limit gauge",
      "weir_rule_window_seconds gauge",
      "weir_store_calls counter",
      "weir_store_failures counter",
      "weir_store_commands counter",
      "weir_store_call_duration_seconds histogram",
      "weir_isolates gauge",
      "weir_open_breakers gauge",
      "weir_overrides gauge",
    ]);
    for (const { help } of metrics) expect(help).toMatch(/^[A-Z].*\.$/);
  });

  it("count every request once by its outcome", () => {
    const values = samples("weir_requests").map((line) => Number(line.split(": ")[1]));
    expect(values.reduce((sum, each) => sum + each)).toBe(TOTALS.requests.requests);
    expect(samples("weir_requests")).toContain("outcome=undecided_denied: 1");
  });

  it("show the outcomes that a rule can have, and others only if they occurred", () => {
    expect(samples("weir_rule_outcomes")).toEqual([
      "rule=login,outcome=allowed: 41",
      "rule=login,outcome=limited: 9",
      "rule=login,outcome=undecided: 0",
      "rule=plan,outcome=allowed: 20",
      "rule=plan,outcome=marked: 5",
      "rule=plan,outcome=undecided: 0",
      "rule=removed,outcome=allowed: 7",
      "rule=removed,outcome=undecided: 1",
      "rule=search,outcome=allowed: 0",
      "rule=search,outcome=limited: 0",
      "rule=search,outcome=undecided: 0",
      "rule=trial,outcome=undecided: 0",
      "rule=trial,outcome=shadow_limited: 6",
    ]);
  });

  it("show the limits and the windows, except for the length of calendar windows", () => {
    expect(samples("weir_rule_limit")).toContain("rule=search,policy=search/month: 9000");
    expect(samples("weir_rule_window_seconds")).toContain("rule=search,policy=search/1m: 60");
    expect(samples("weir_rule_window_seconds").join()).not.toContain("month");
  });

  it("have a cumulative histogram in seconds", () => {
    expect(samples("weir_store_call_duration_seconds")).toEqual([
      "le=0.001: 1",
      "le=0.002: 1",
      "le=0.005: 3",
      "le=0.01: 4",
      "le=0.02: 5",
      "le=0.05: 6",
      "le=0.1: 7",
      "le=0.2: 8",
      "le=0.5: 9",
      "le=1.0: 10",
      "le=2.0: 11",
      "le=5.0: 12",
      "le=+Inf: 19",
      ": 12.345",
      ": 19",
    ]);
  });

  it("are valid before the first request, without rules, and with an incomplete histogram", () => {
    const requests = Object.fromEntries(Object.keys(TOTALS.requests).map((name) => [name, 0]));
    const store = { calls: 0, failures: 0, commands: 0, latency: [], latencyMs: 0 };
    const empty = { ...TOTALS, requests, store, rules: {} } as unknown as Totals;
    for (const rules of [[], RULES]) {
      const metrics = parseOpenMetrics(toOpenMetrics(text(empty, rules)));
      expect(metrics.has("weir_rule_requests")).toBe(rules.length > 0);
    }
  });

  it("escape labels, although no valid configuration needs it", () => {
    const name = 'a"b\\c\nd';
    const rules = [ruleView(name, { key: "header:x" })];
    expect(samples("weir_rule_requests", { ...TOTALS, rules: {} }, rules)).toEqual([
      `rule=${name}: 0`,
    ]);
    const rule = ruleView("constructor");
    expect(samples("weir_rule_requests", { ...TOTALS, rules: {} }, [rule])).toEqual([
      "rule=constructor: 0",
    ]);
  });

  it("have Weir's version", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(VERSION).toBe(version);
    expect(samples("weir_info")).toEqual([`version=${version}: 1`]);
  });

  it.skipIf(!hasPromtool)("pass promtool's check", () => {
    expect(promtool(["check", "metrics"], text())).toEqual({ status: 0, output: "" });
  });
});

describe("the parser of these tests", () => {
  it.each([
    ["a missing end", "# TYPE a gauge\na 1\n"],
    ["a sample without a description", "a 1\n# EOF\n"],
    ["a counter without _total", "# TYPE a counter\na 1\n# EOF\n"],
    ["a metric in two places", "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n# EOF\n"],
    ["a unit that the name lacks", "# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n"],
    ["a label that is not escaped", '# TYPE a gauge\na{b="c"d"} 1\n# EOF\n'],
    ["the same sample twice", '# TYPE a gauge\na{b="c"} 1\na{b="c"} 2\n# EOF\n'],
    ["a negative counter", "# TYPE a counter\na_total -1\n# EOF\n"],
    ["a histogram without +Inf", '# TYPE a histogram\na_bucket{le="1.0"} 1\na_count 1\n# EOF\n'],
    ["an empty line", "# TYPE a gauge\n\na 1\n# EOF\n"],
  ])("refuses %s", (_, metrics) => {
    expect(() => parseOpenMetrics(metrics)).toThrow();
  });
});

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { metricsOf, metricsText, VERSION } from "../../../src/admin/metrics.ts";
import type { Totals } from "../../../src/control/protocol.ts";
import type { RuleSums } from "../../../src/statistics/sums.ts";
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
  it("are those of metrics.txt", async () => {
    await expect(text().replace(VERSION, "VERSION")).toMatchFileSnapshot("metrics.txt");
    for (const { help } of parseOpenMetrics(toOpenMetrics(text())).values()) {
      expect(help).toMatch(/^[A-Z].*\.$/);
    }
  });

  it("count every request once by its outcome", () => {
    const values = samples("weir_requests").map((line) => Number(line.split(": ")[1]));
    expect(values.reduce((sum, each) => sum + each)).toBe(TOTALS.requests.requests);
    expect(samples("weir_requests")).toContain("outcome=undecided_denied: 1");
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

  it("have the open requests of each rule with concurrent, and of rules whose tiers have it", () => {
    const open = (totals: Totals) => samples("weir_rule_open_requests_highest", totals);
    const login = { ...(TOTALS.rules.login as RuleSums), openPeak: 2 };
    expect(open({ ...TOTALS, rules: { login } })).toEqual(["rule=login: 2", "rule=stream: 0"]);
  });

  it("have the requests that passed ahead of each rule with async, and of rules that had it", () => {
    const reads = ruleView("reads", { async: true });
    const login = { ...(TOTALS.rules.login as RuleSums), ahead: 2, over: 1 };
    const ofRules = (name: string) =>
      samples(name, { ...TOTALS, rules: { login } }, [ruleView("login"), ruleView("trial"), reads]);
    expect(ofRules("weir_rule_requests_ahead")).toEqual(["rule=login: 2", "rule=reads: 0"]);
    expect(ofRules("weir_rule_requests_ahead_over")).toEqual(["rule=login: 1", "rule=reads: 0"]);
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

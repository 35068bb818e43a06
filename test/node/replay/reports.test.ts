import { describe, expect, it } from "vitest";
import { jsonText, widthOf } from "../../../cli/print/text.ts";
import type { DeniedClient, ReplayReport, RuleReport } from "../../../cli/replay/report.ts";
import { textReport } from "../../../cli/replay/text-report.ts";

/** Texts as attackers write them into the fields of requests. */
const HOSTILE = [
  "\u001b[2J\u001b]0;title\u0007 \u009b31m red",
  "a | b || c",
  "<script>alert(1)</script><img src=x onerror=alert(1)>",
  "@user @org/team #1 owner/repo#2",
  "[click](https://evil.example) ![i](//evil.example/x.png) https://evil.example www.evil.example",
  "`` ` ``` <!-- --> --> <details>",
  "\u202Egnp.exe\u2066 \u200F\u061C rtl",
  "line\r\none\u2028two\n\n# heading\n- list",
  "</code></td></table><style>*{display:none}</style>",
  "'\"><svg/onload=alert(1)>",
  "表".repeat(200),
];

function clientOf(client: string, denied = 5): DeniedClient {
  return {
    ...{ client, requests: denied + 4, denied, deniedSucceeded: denied - 1 },
    ...{ firstDenied: "2026-11-20T00:00:00.000Z", lastDenied: "2026-11-20T00:00:01.000Z" },
  };
}

const COUNTS = {
  ...{ requests: 1_353_230, allowed: 1_286_024, denied: 67_206, deniedShare: 0.0497 },
  ...{ deniedSucceeded: 55_781, clients: 51_204, clientsDenied: 854 },
};

const CLIENTS = Array.from({ length: 12 }, (_, at) => clientOf(`203.0.113.${at}`, 900 - at));

const ruleOf = (name: string, mode: RuleReport["mode"] = "enforce"): RuleReport => ({
  ...{ name, mode, key: "header:x-api-key | ip", match: "GET /search", mostDenied: CLIENTS },
  ...{ limits: "60 per 1m, 1000 per 1h", ...COUNTS },
});

function reportOf(fields: Partial<ReplayReport> = {}): ReplayReport {
  return {
    version: 1,
    log: {
      ...{ files: ["access.log.1", "access.log"], formats: ["combined", "combined"] },
      ...{ lines: 1_353_500, requests: 1_353_230, broken: 1, outside: 160, ignored: 109 },
      brokenLines: [{ file: "access.log", line: 4711, reason: "has no fields" }],
      ...{ from: "2026-11-20T00:00:00.000Z", to: "2026-11-21T23:59:59.000Z" },
    },
    config: "weir.config.ts",
    failed: [],
    notes: [
      { code: "not-logged", rule: "partners", text: 'The rule "partners" is left out. It is.' },
      { code: "late", text: "Something else is missing." },
    ],
    total: { ...COUNTS, unmatched: 7, mostDenied: CLIENTS },
    rules: [ruleOf("search"), ruleOf("login", "shadow")],
    leftOut: [{ rule: "partners", reason: "The log does not state tokens." }],
    ...fields,
  };
}

const COMPARISON: NonNullable<ReplayReport["comparison"]> = {
  ...{ against: "main.config.ts", notes: [], leftOut: [], before: { denied: 9, clientsDenied: 2 } },
  requests: {
    ...{ allowedByBoth: 1, deniedByBoth: 5, newlyDenied: 7, newlyDeniedSucceeded: 3 },
    newlyAllowed: 4,
  },
  clients: { newlyDenied: 6, noLongerDenied: 2 },
  mostNewlyDenied: [
    {
      ...{ client: "203.0.113.9", requests: 20, deniedBefore: 1, denied: 8, newlyDenied: 7 },
      newlyDeniedSucceeded: 3,
    },
  ],
};

/** Characters that a terminal obeys, or that change the direction of a text. */
const CONTROL = /(?!\n)[\p{Cc}\p{Bidi_Control}\u200b-\u200d\u2028\u2029\u2060\ufeff]/u;

describe("with hostile texts in the log", () => {
  const mostDenied = HOSTILE.map((text) => clientOf(text));
  const report = reportOf({
    total: { ...COUNTS, unmatched: 0, mostDenied },
    rules: [ruleOf(HOSTILE[0] ?? ""), { ...ruleOf("a"), mostDenied }],
    comparison: {
      ...COMPARISON,
      mostNewlyDenied: HOSTILE.map((client) => ({
        ...{ client, requests: 2, deniedBefore: 0, denied: 2, newlyDenied: 2 },
        newlyDeniedSucceeded: 1,
      })),
    },
  });

  it.each([
    ["the text", textReport(report)],
    ["the JSON", jsonText(report)],
  ])("%s has no character that a terminal obeys", (_, text) => {
    expect(CONTROL.exec(text)).toBeNull();
  });

  it("the text has lines of at most 120 columns, and no line that a text has begun", () => {
    const lines = textReport(report).split("\n");
    expect(lines.filter((line) => widthOf(line) > 120)).toEqual([]);
    expect(lines.filter((line) => /^(# heading|- list|one)/.test(line))).toEqual([]);
  });
});

describe("textReport", () => {
  it("answers first whom the rules would have denied, and gives reasons once", async () => {
    await expect(textReport(reportOf({ comparison: COMPARISON }))).toMatchFileSnapshot(
      "report.txt",
    );
  });

  it("does not say that no request is denied if all rules were left out", () => {
    const total = { ...COUNTS, denied: 0, unmatched: 1, mostDenied: [] };
    const text = textReport(reportOf({ rules: [], total }));
    expect(text).toContain("No rule of weir.config.ts could be replayed");
    expect(text).not.toContain("would have denied none");
  });

  it("names exceeded bounds at its start", () => {
    const failed = [
      { option: "--max-denied", allowed: 10, clients: 23 },
      { option: "--max-newly-denied", allowed: 0, clients: 1 },
    ] as const;
    const start = textReport(reportOf({ failed })).split("\n\n")[0];
    expect(start).toContain("FAILED: 23 clients are denied. --max-denied allows 10.");
    expect(start).toContain("FAILED: 1 client is newly denied. --max-newly-denied allows 0.");
  });
});

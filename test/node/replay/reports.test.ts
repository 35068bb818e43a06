import { describe, expect, it } from "vitest";
import { replayPage } from "../../../cli/html/replay-page.ts";
import { jsonText, widthOf } from "../../../cli/print/text.ts";
import { markdownReport } from "../../../cli/replay/markdown-report.ts";
import type { DeniedClient, ReplayReport } from "../../../cli/replay/report.ts";
import { textReport } from "../../../cli/replay/text-report.ts";
import { replayOf } from "../html/fixtures.ts";

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

function hostile(text: string): DeniedClient {
  return {
    ...{ client: text, requests: 9, denied: 5, deniedSucceeded: 4, error: 0 },
    ...{ firstDenied: "2026-11-20T00:00:00Z", lastDenied: "2026-11-20T00:00:01Z" },
    userAgents: [{ text, count: 5 }],
    paths: [{ text: `GET /${text}`, count: 5 }],
  };
}

function hostileReport(): ReplayReport {
  const report = replayOf(2);
  const mostDenied = HOSTILE.slice(0, 10).map(hostile);
  const [file = ""] = HOSTILE;
  const brokenLines = HOSTILE.slice(0, 10).map((text) => ({ file, line: 7, reason: text }));
  return {
    ...report,
    log: { ...report.log, brokenLines },
    total: { ...report.total, mostDenied },
    rules: report.rules.map((rule) => ({ ...rule, mostDenied })),
  };
}

/** Characters that a terminal obeys, or that change the direction of a text. */
const CONTROL = /(?!\n)[\p{Cc}\p{Bidi_Control}\u200b-\u200d\u2028\u2029\u2060\ufeff]/u;

describe("a report for which all rules were left out", () => {
  const { comparison: _, ...whole } = replayOf(1);
  const leftOut = [{ rule: "api", reason: "The log does not state x-api-key." }];
  const report: ReplayReport = {
    ...{ ...whole, rules: [], leftOut },
    total: { ...whole.total, requests: 1, denied: 0, clients: 1, clientsDenied: 0 },
  };

  it.each([
    ["the text", textReport(report)],
    ["the Markdown", markdownReport(report)],
    ["the page", replayPage(report)],
  ])("does not say in %s that no request is denied", (_form, text) => {
    expect(text).toMatch(/no rule (of .* )?could be replayed/i);
    expect(text).not.toMatch(/would have denied none|No client would have been denied/);
  });
});

describe("with hostile texts in the log", () => {
  const report = hostileReport();

  it.each([
    ["the text", textReport(report)],
    ["the Markdown", markdownReport(report)],
    ["the JSON", jsonText(report)],
  ])("%s has no character that a terminal obeys", (_, text) => {
    expect(CONTROL.exec(text)).toBeNull();
  });

  it("the text has lines of at most 120 columns, and no more lines than with harmless texts", () => {
    const lines = textReport(report).split("\n");
    expect(lines.filter((line) => widthOf(line) > 120)).toEqual([]);
    expect(lines.filter((line) => /^(# heading|- list|one)/.test(line))).toEqual([]);
  });

  it("the Markdown has nothing that GitHub would read as a link, a name, HTML or a cell", () => {
    const text = markdownReport(report);
    const markup = text.replaceAll(/<code>|<\/code>|<!-- -->/g, "");
    expect(markup).not.toMatch(/[<>`@[\]\\]/);
    expect(markup).not.toMatch(/:\/\//);
    expect(text.replaceAll("<!-- -->", "\0")).not.toMatch(/www\./i);
    const rows = text.split("\n").filter((line) => line.includes("alert"));
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row.split("|")).toHaveLength(8);
    expect(text.split("\n").filter((line) => /^(# heading|- list|one)/.test(line))).toEqual([]);
  });

  it("the page has the texts only as text", () => {
    const page = replayPage(report);
    expect(page).not.toContain("<script>alert");
    expect(page).not.toContain("<svg/onload");
    expect(page).not.toContain("<style>*");
    expect(page).not.toContain("\u202E");
  });
});

describe("textReport", () => {
  it("answers first whom the rules would have denied, and gives reasons once", async () => {
    await expect(textReport(replayOf(2))).toMatchFileSnapshot("report.txt");
  });

  it.each([0, 1, 30])("has lines of at most 120 columns with %d rules", (rules) => {
    const lines = textReport(replayOf(rules)).split("\n");
    expect(lines.filter((line) => widthOf(line) > 120)).toEqual([]);
    expect(lines.filter((line) => line !== line.trimEnd())).toEqual([]);
  });

  it("names exceeded bounds at its start", () => {
    const failed = [
      { option: "--max-denied", allowed: 10, clients: 23 },
      { option: "--max-newly-denied", allowed: 0, clients: 1 },
    ] as const;
    const start = textReport(replayOf(1, { failed })).split("\n\n")[0];
    expect(start).toContain("FAILED: 23 clients are denied. --max-denied allows 10.");
    expect(start).toContain("FAILED: 1 client is newly denied. --max-newly-denied allows 0.");
  });

  it("marks numbers of clients that are estimates", () => {
    const report = replayOf(1);
    const total = { ...report.total, isEstimate: true, clients: 5_000_000, clientsDenied: 1000 };
    const both = { ...total, isDeniedEstimate: true };
    expect(textReport({ ...report, total })).toContain("from 1,000 of about 5,000,000 clients");
    expect(textReport({ ...report, total: both })).toContain("from about 1,000 of about");
  });
});

describe("markdownReport", () => {
  it("begins with exceeded bounds", async () => {
    const failed = [{ option: "--max-denied", allowed: 1, clients: 2 }] as const;
    await expect(markdownReport(replayOf(2, { failed }))).toMatchFileSnapshot(
      "report-markdown.txt",
    );
  });

  it("has at most 60 KiB, whatever the report has", () => {
    const long = "|".repeat(200);
    const clients = Array.from({ length: 20 }, () => hostile(long));
    const rule = { ...replayOf(1).rules[0], name: long, limits: long };
    const report = replayOf(1);
    const text = markdownReport({
      ...report,
      rules: Array(1000).fill({ ...rule, mostDenied: clients }),
      total: { ...report.total, mostDenied: clients },
    });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(60 * 1024);
    expect(text).toMatch(/The rest is left out, because it is too long\. .*\n$/);
    expect(text.split("\n").filter((line) => line.startsWith("|") && !line.endsWith("|"))).toEqual(
      [],
    );
  });
});

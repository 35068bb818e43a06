import { describe, expect, it } from "vitest";
import { rangeText } from "../../../cli/html/parts.ts";
import { replayPage, rulesSection, titleOf } from "../../../cli/html/replay-page.ts";
import type { ReplayReport } from "../../../cli/replay/report.ts";
import { COMPARISON } from "./comparison.ts";
import { EMPTY_REPLAY, replayOf, ruleOf } from "./fixtures.ts";

const REPLAY = replayOf(2);
const NOTHING_DENIED = { denied: 0, deniedSucceeded: 0, clientsDenied: 0 };
const STATED = { addresses: true, statuses: true };

const noteOf = (code: string, rule?: string) => ({
  code,
  text: `The note ${code}.`,
  ...(rule && { rule }),
});

describe("the headline of a replay", () => {
  const total = {
    ...REPLAY.total,
    requests: 1000,
    denied: 40,
    deniedSucceeded: 30,
    clients: 200,
    clientsDenied: 7,
  };
  const { clients, requests } = COMPARISON;
  const compared = (changes: Partial<typeof clients>) => ({
    total,
    comparison: { ...COMPARISON, clients: { ...clients, ...changes } },
  });

  it.each<[Partial<ReplayReport>, string]>([
    [{ total }, "7 of 200 clients would have been denied"],
    [{ total: { ...total, isEstimate: true } }, "7 of about 200 clients would have been denied"],
    [
      { total: { ...total, isEstimate: true, isDeniedEstimate: true } },
      "About 7 of about 200 clients would have been denied",
    ],
    [{ total: { ...total, clients: 1, clientsDenied: 1 } }, "1 of 1 client would have been denied"],
    [{ total: { ...total, ...NOTHING_DENIED } }, "No client would have been denied"],
    [{ total: EMPTY_REPLAY.total }, "No request was replayed"],
    [
      { total: { ...total, clients: 0, clientsDenied: 0 }, notes: [noteOf("address-not-logged")] },
      "40 of 1,000 requests would have been denied",
    ],
    [compared({ newlyDenied: 3 }), "3 clients would be newly denied"],
    [compared({ newlyDenied: 1 }), "1 client would be newly denied"],
    [compared({ newlyDenied: 3, isEstimate: true }), "About 3 clients would be newly denied"],
    [compared({ newlyDenied: 0 }), "No client would be newly denied"],
    [
      { ...compared({ newlyDenied: 0 }), notes: [noteOf("address-not-logged")] },
      `${requests.newlyDenied.toLocaleString("en-US")} requests would be newly denied`,
    ],
  ])("answers whom the rules would have denied: %#", (changes, title) => {
    expect(titleOf({ ...REPLAY, notes: [], ...changes })).toBe(title);
  });

  it("mentions rules that would deny, but only try", () => {
    const page = (rules: ReplayReport["rules"]) => replayPage({ ...REPLAY, rules });
    expect(page([{ ...ruleOf(0), mode: "shadow" }])).toContain("Rules in the mode shadow");
    expect(page([{ ...ruleOf(0), mode: "shadow", denied: 0 }])).not.toContain("Rules in the mode");
    expect(page([ruleOf(0)])).not.toContain("Rules in the mode");
  });
});

describe("the page of a replay", () => {
  it("has no column of succeeded requests if the log states no statuses", () => {
    const changes = { comparison: COMPARISON };
    expect(replayPage(replayOf(2, changes))).toContain("Had succeeded");
    const page = replayPage(replayOf(2, { ...changes, notes: [noteOf("status-not-logged")] }));
    expect(page).not.toContain("Had succeeded");
    expect(page).not.toContain(", had succeeded</th>");
    expect(page).toContain("the log states no statuses");
  });

  it("gives the reason of a rule that was left out once", () => {
    const reason = "The log does not state it.";
    const page = replayPage(
      replayOf(1, {
        leftOut: [{ rule: "partners", reason }],
        notes: [{ code: "not-logged", rule: "partners", text: `Left out. ${reason}` }],
        comparison: { ...COMPARISON, leftOut: [{ rule: "partners", reason }] },
      }),
    );
    expect(page.split(reason)).toHaveLength(2);
  });

  it("shows names between backticks as code", () => {
    const reason = "`partners.key` needs the function `<b>`.";
    const page = replayPage(
      replayOf(1, {
        leftOut: [{ rule: "partners", reason }],
        notes: [{ code: "file-incomplete", text: "`--json` has it." }],
      }),
    );
    expect(page).toContain("<li><code>--json</code> has it.</li>");
    expect(page).toContain(
      "<b>partners:</b> <code>partners.key</code> needs the function <code>&lt;b&gt;</code>.",
    );
  });

  it("has the comparison before everything else", () => {
    const page = replayPage(replayOf(2, { comparison: COMPARISON }));
    const places = ["comparison", "total", "rules", "clients", "log"].map((id) =>
      page.indexOf(`<section id="${id}"`),
    );
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
  });

  it("puts an exceeded bound and an interruption above all notes", () => {
    const page = replayPage(
      replayOf(1, {
        isPartial: true,
        failed: [{ option: "--max-denied", allowed: 5, clients: 854 }],
      }),
    );
    const bound = page.indexOf("854 clients denied, but <code>--max-denied</code> allows 5.");
    expect(bound).toBeGreaterThan(page.indexOf("The replay was interrupted"));
    expect(bound).toBeLessThan(page.indexOf("What these numbers assume"));
    expect(page.indexOf("The replay was interrupted")).toBeGreaterThan(0);
  });
});

describe("the rules of a report", () => {
  const rows = (count: number) => {
    const rules = Array.from({ length: count }, (_, index) => ruleOf(3 * index));
    const section = `${rulesSection(rules, STATED)}`;
    const cards = section.split("<article").slice(1);
    const clients = cards.map((card) => card.split("<tbody><tr><th").length - 1);
    return { most: Math.max(...clients), charts: section.split("<figure").length - 1 };
  };

  it.each([
    { count: 1, most: 20 },
    { count: 10, most: 10 },
    { count: 30, most: 3 },
    { count: 100, most: 3 },
  ])("list fewer clients the more rules there are: $most for $count", ({ count, most }) => {
    expect(rows(count).most).toBe(most);
  });

  it("have charts for at most 40 rules", () => {
    expect(rows(40).charts).toBe(40);
    expect(rows(41).charts).toBe(40);
  });

  it("are in the order of their denied requests, and only those with one have a card", () => {
    const rules = [
      { ...ruleOf(0), name: "quiet", denied: 0 },
      { ...ruleOf(0), name: "some", denied: 5 },
      { ...ruleOf(0), name: "most", denied: 9 },
    ];
    const section = `${rulesSection(rules, STATED)}`;
    const names = [...section.matchAll(/<th scope="row">(?:<a[^>]*>)?(quiet|some|most)/g)];
    expect(names.map(([, name]) => name)).toEqual(["most", "some", "quiet"]);
    expect(section.split("<article")).toHaveLength(3);
  });
});

describe("texts", () => {
  it.each([
    [rangeText("2026-11-20T10:00:00Z", "2026-11-20T10:01:00Z"), "2026-11-20 10:00:00 – 10:01:00"],
    [
      rangeText("2026-11-20T23:59:00Z", "2026-11-21T00:00:00Z"),
      "2026-11-20 23:59:00 – 2026-11-21 00:00:00",
    ],
    [rangeText("no time", "2026-11-21T00:00:00Z"), "unknown – 2026-11-21 00:00:00"],
  ])("are %s", (text, expected) => {
    expect(text).toBe(expected);
  });
});

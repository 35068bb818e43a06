import { describe, expect, it } from "vitest";
import { compareRules, ruleChanges } from "../../../cli/replay/compare-rules.ts";
import { ReplayTotals } from "../../../cli/replay/totals.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { ruleNamed } from "./verdicts.ts";

type RuleInput = Extract<ConfigInput["rules"], readonly unknown[]>[number];

const API: RuleInput = { name: "api", limit: 10, window: "1m" };

function changesOf(before: readonly RuleInput[], now: readonly RuleInput[], settings = {}) {
  const changes = ruleChanges(
    defineConfig({ ...settings, rules: [...now] }),
    defineConfig({ rules: [...before] }),
  );
  return Object.fromEntries(changes);
}

describe("ruleChanges", () => {
  it.each<[string, RuleInput, RuleInput]>([
    ["the limit", API, { ...API, limit: 11 }],
    ["the mode", API, { ...API, mode: "shadow" }],
    [
      "a network in match",
      { ...API, match: { ips: ["192.0.2.1"] } },
      { ...API, match: { ips: ["192.0.2.2"] } },
    ],
    [
      "a header's text in exempt",
      { ...API, exempt: { headers: { "x-job": "one-secret-text-of-32-characters!" } } },
      { ...API, exempt: { headers: { "x-job": "two-secret-text-of-32-characters!" } } },
    ],
    [
      "the limit of a tier",
      { ...API, tiers: { by: "header:x-plan", limits: { free: { limit: 1, window: "1m" } } } },
      { ...API, tiers: { by: "header:x-plan", limits: { free: { limit: 2, window: "1m" } } } },
    ],
  ])("sees a change of %s", (_, before, now) => {
    expect(changesOf([before], [now])).toEqual({ api: "changed" });
    expect(changesOf([before], [before])).toEqual({ api: "same" });
  });

  it("names added and removed rules, and ignores the order of rules", () => {
    const [other, login] = [
      { ...API, name: "other" },
      { ...API, name: "login" },
    ];
    expect(changesOf([API, other], [login, API])).toEqual({
      ...{ login: "added", api: "same", other: "removed" },
    });
    expect(changesOf([API, other], [other, API])).toEqual({ api: "same", other: "same" });
  });

  it("sees a rule as changed if a setting changes the clients of all rules", () => {
    expect(changesOf([API], [API], { ipv6Prefix: 56 })).toEqual({ api: "changed" });
    expect(changesOf([API], [API], { timeoutMs: 500 })).toEqual({ api: "same" });
  });
});

describe("compareRules", () => {
  const engineOf = (leftOut: readonly string[]) => ({
    ...{ rules: [ruleNamed("api")], notes: [] },
    leftOut: leftOut.map((rule) => ({ rule, reason: "" })),
  });

  function notesOf(before: readonly string[], now: readonly string[]) {
    const sides = [
      { config: defineConfig({ rules: [API] }), engine: engineOf(now) },
      { config: defineConfig({ rules: [API] }), engine: engineOf(before) },
    ] as const;
    const { notes } = compareRules(
      ...sides,
      new ReplayTotals(sides[0].engine, sides[1].engine),
      [],
    );
    return notes.map(({ code, text }) => `${code}: ${text}`);
  }

  it.each([
    [[], ["api"], 'The rule "api" is left out under this configuration.'],
    [["api"], [], 'The rule "api" is left out under the other configuration.'],
  ])("notes that it is unfair if %j is left out before, and %j now", (before, now, text) => {
    const notes = notesOf(before, now);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toContain(`unfair-comparison: ${text} So the comparison is not fair`);
  });

  it.each([[[]], [["api"]]])("notes nothing if both leave out %j", (leftOut) => {
    expect(notesOf(leftOut, leftOut)).toEqual([]);
  });
});

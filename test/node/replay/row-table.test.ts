import { describe, expect, it } from "vitest";
import { ReplayEngine } from "../../../cli/replay/engine.ts";
import { isPlainRule, PlainRule } from "../../../cli/replay/plain-rules.ts";
import { RowTable } from "../../../cli/replay/row-table.ts";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { COMBINED, decide, logged } from "./requests.ts";

const MINUTE = 60_000;

const row = (expiresAt: number) => ({ window: 0, count: 1, expiresAt });

const ruleOf = (fields: Partial<RuleInput>): Rule => {
  const rules = [{ name: "a", limit: 3, window: "1m", ...fields }] as RuleInput[];
  return defineConfig({ rules }).rules[0] as Rule;
};

describe("the rows of a replay", () => {
  it("are at most twice those that have not expired, however many there were", () => {
    const rows = new RowTable();
    let largest = 0;
    for (let second = 0; second < 1000; second++) {
      const now = 1000 * second;
      const writes = Array.from(
        { length: 100 },
        (_, index) => [`${second} ${index}`, row(now + 10_000)] as const,
      );
      rows.write(new Map(writes), now);
      largest = Math.max(largest, rows.size);
    }
    expect(largest).toBeLessThan(4200);
    expect(rows.read("999 0", 1000 * 999)).toBeDefined();
    expect(rows.read("989 0", 1000 * 999)).toBeUndefined();
  });

  it("are read until they expire, and removed by a write without a row", () => {
    const rows = new RowTable();
    rows.write(new Map([["a", row(1000)]]), 0);
    expect(rows.read("a", 999)).toEqual(row(1000));
    expect(rows.read("a", 1000)).toBeUndefined();
    rows.write(new Map([["a", undefined]]), 0);
    expect(rows.size).toBe(0);
  });

  it("are removed for rules of every kind", () => {
    const config = defineConfig({
      rules: [
        { name: "login", match: { paths: ["/login"] }, limit: 2, window: "1m", ban: "2m" },
        { name: "roll", match: { paths: ["/roll"] }, limit: 1, window: "1m", capacity: 3 },
      ],
    });
    const engine = new ReplayEngine(config, COMBINED);
    let largest = 0;
    for (let minute = 0; minute < 3000; minute++) {
      const paths = ["/login", "/login", "/login", "/roll"];
      const requests = paths.map((target, index) =>
        logged(60 * minute + index, { target, ip: `203.0.113.${minute % 250}` }),
      );
      decide(engine, requests);
      largest = Math.max(largest, engine.rows.size);
    }
    expect(largest).toBeLessThanOrEqual(4096);
  });
});

describe("a plain rule", () => {
  it("forgets clients whose windows are over", () => {
    const plain = new PlainRule(ruleOf({}), 0, "weir");
    let largest = 0;
    for (let index = 0; index < 300_000; index++) {
      const now = 100 * index;
      plain.add(`${index}`, "", now).charge(now, true, []);
      largest = Math.max(largest, plain.size);
    }
    expect(largest).toBeLessThan(66_000);
  });

  it("keeps clients while one of their windows is not over", () => {
    const limits = [
      { limit: 3, window: "1m" },
      { limit: 9, window: "1h" },
    ] as const;
    const plain = new PlainRule(ruleOf({ limit: undefined, window: undefined, limits }), 0, "weir");
    for (let index = 0; index < 40_000; index++) plain.add(`${index}`, "", 0).charge(0, true, []);
    plain.add("later", "", 59 * MINUTE);
    expect(plain.get("0")).toBeDefined();
    for (let index = 0; index < 40_000; index++) plain.add(`b${index}`, "", 60 * MINUTE);
    expect(plain.get("0")).toBeUndefined();
  });

  it.each<Partial<RuleInput>>([
    { ban: "1m" },
    { shards: 2 },
    { start: "spread" },
    { capacity: 9 },
    { limit: 0 },
    { cost: "body:bytes" },
    { count: { status: [404] } },
    { tiers: { by: "header:x-plan", limits: { pro: { limit: 9, window: "1m" } } } },
  ])("has not %j", (fields) => {
    expect(isPlainRule(ruleOf({}))).toBe(true);
    expect(isPlainRule(ruleOf(fields))).toBe(false);
  });
});

import { describe, expect, it } from "vitest";
import { ExactEngine } from "../../../cli/replay/exact-engine.ts";
import { RowTable } from "../../../cli/replay/row-table.ts";
import { LogRuleApplier } from "../../../cli/replay/rule-applier.ts";
import { defineConfig } from "../../../src/config/index.ts";
import type { Demand } from "../../../src/engine/counter.ts";
import { COMBINED, logged } from "./requests.ts";

const MINUTE = 60_000;

const counterOf = (client: number, fields: Partial<Demand> = {}): Demand => ({
  key: `weir:all:1m:${client}`,
  identity: `${client}`,
  limit: 3,
  windowMs: MINUTE,
  offsetMs: 0,
  cost: 1,
  ceiling: 3,
  ...fields,
});

describe("the rows of a replay", () => {
  it("are those of live windows, however many windows have passed", () => {
    const rows = new RowTable();
    const sizes: number[] = [];
    for (let window = 0; window < 50; window++) {
      for (let client = 0; client < 100; client++) {
        rows.decide([[counterOf(client)]], window * MINUTE + 10 * client);
      }
      sizes.push(rows.size);
    }
    // Rows are kept for a second after their window.
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200);
    rows.decide([[counterOf(1)]], 50 * MINUTE + 2000);
    expect(rows.size).toBe(1);
  });

  it("stay while a count carries over to later windows, and go when it is repaid", () => {
    const rows = new RowTable();
    const fields = { rollsOver: true, ceiling: 9 };
    const admitted = (at: number, cost: number) =>
      rows.decide([[counterOf(1, { ...fields, cost })]], at)[0]?.admitted;
    expect(admitted(0, 9)).toBe(true);
    expect(admitted(MINUTE + 5000, 4)).toBe(false);
    expect(admitted(MINUTE + 5000, 3)).toBe(true);
    expect(rows.size).toBe(1);
    rows.decide([[counterOf(2)]], 5 * MINUTE);
    expect(rows.size).toBe(1);
  });

  it("include bans, which end before their strikes", () => {
    const rows = new RowTable();
    const escalation = { lengthsMs: [MINUTE, 10 * MINUTE], forgetAfterMs: MINUTE };
    const counter = counterOf(1, { ceiling: 0, limit: 0, banMs: MINUTE, escalation });
    const banAt = (at: number) => rows.decide([[counter]], at)[0]?.tallies[0]?.banMs;
    expect(banAt(0)).toBe(MINUTE);
    expect(banAt(30_000)).toBe(MINUTE / 2);
    expect(rows.size).toBe(2);
    expect(banAt(MINUTE)).toBe(10 * MINUTE);
    expect(banAt(20 * MINUTE)).toBe(MINUTE);
    rows.decide([[counterOf(2)]], 60 * MINUTE);
    expect(rows.size).toBe(1);
  });

  it("are those of live windows for all ways of deciding", () => {
    const config = defineConfig({
      rules: [
        {
          name: "site",
          limits: [
            { limit: 9, window: "1m" },
            { limit: 50, window: "5m" },
          ],
        },
        { name: "login", match: { paths: ["/login"] }, limit: 2, window: "1m", ban: "2m" },
        { name: "shadow", match: { paths: ["/a"] }, mode: "shadow", limit: 1, window: "1m" },
        { name: "roll", match: { paths: ["/roll"] }, limit: 1, window: "1m", capacity: 3 },
      ],
    });
    const rows = new RowTable();
    const applier = new LogRuleApplier(config, config.rules, COMBINED, {}, Math.random, rows);
    const engine = new ExactEngine(config, config.rules, applier, rows);
    const sizes: number[] = [];
    for (let minute = 0; minute < 400; minute++) {
      const paths = ["/login", "/", "/login", "/login", "/a", "/a", "/roll", "/"];
      if (minute % 3 !== 0) paths.reverse();
      const requests = paths.map((target, index) => logged(60 * minute + 7 * index, { target }));
      engine.replay(requests, () => {});
      sizes.push(rows.size);
    }
    // At most the rows of two windows of each rule, and a ban.
    expect(Math.max(...sizes.slice(300))).toBeLessThanOrEqual(12);
    expect(Math.max(...sizes.slice(300))).toBe(Math.max(...sizes.slice(0, 100)));
  });

  it("may be decades apart", () => {
    const rows = new RowTable();
    for (let year = 0; year < 100; year++) rows.decide([[counterOf(year)]], year * 3.2e10);
    expect(rows.size).toBe(1);
  });
});

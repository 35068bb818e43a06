import { describe, expect, it } from "vitest";
import { ReplayEngine } from "../../../cli/replay/engine.ts";
import { RowTable } from "../../../cli/replay/row-table.ts";
import { defineConfig } from "../../../src/config/index.ts";
import { COMBINED, decide, logged } from "./requests.ts";

const row = (expiresAt: number) => ({ window: 0, count: 1, expiresAt });

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

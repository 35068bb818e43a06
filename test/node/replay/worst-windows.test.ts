import { describe, expect, it } from "vitest";
import { WorstWindows } from "../../../cli/replay/worst-windows.ts";
import { logged, START } from "./requests.ts";
import { verdictOn } from "./verdicts.ts";

const MINUTE = 60_000;

function add(windows: WorstWindows, second: number, denied: boolean, fields = {}) {
  const request = logged(second);
  windows.add(verdictOn(request, { denied, ...fields }), request.at);
}

/** The minutes of windows, counted from the first one. */
const minutesOf = (windows: WorstWindows) =>
  windows.top().map(({ start }) => (Date.parse(start) - START) / MINUTE);

describe("WorstWindows", () => {
  it("adds up all clients of a window, and leaves windows without a denial out", () => {
    const windows = new WorstWindows();
    for (const client of ["a", "b"]) add(windows, 5, true, { client });
    add(windows, 30, false);
    add(windows, 60, false);
    expect(windows.top()).toEqual([
      {
        policy: "api",
        start: "2026-01-01T00:00:00.000Z",
        end: "2026-01-01T00:01:00.000Z",
        ...{ requests: 3, denied: 2 },
      },
    ]);
  });

  it("keeps the ten windows with the most denials, the earlier ones first among equals", () => {
    const windows = new WorstWindows();
    const denials = [1, 5, 2, 9, 1, 1, 7, 3, 3, 8, 1, 4, 1, 6];
    for (const [minute, count] of denials.entries()) {
      for (let request = 0; request < count; request++) add(windows, minute * 60, true);
    }
    add(windows, 100 * 60, false);
    expect(minutesOf(windows)).toEqual([3, 9, 6, 13, 1, 11, 7, 8, 2, 0]);
  });

  it("counts a request that isolates decide shortly after the window's end", () => {
    const windows = new WorstWindows();
    const late = { windowStart: START, windowEnd: START + MINUTE };
    add(windows, 59, true);
    add(windows, 61, true);
    add(windows, 62, true, late);
    expect(windows.top()).toMatchObject([{ denied: 2 }, { denied: 1 }]);
  });

  it("does not count requests of a window if another limit of the rule has denied some", () => {
    const windows = new WorstWindows();
    add(windows, 1, true);
    add(windows, 2, true, { policy: "api/1h", windowStart: START, windowEnd: START + 60 * MINUTE });
    expect(windows.top().map(({ policy, requests }) => [policy, requests])).toEqual([
      ["api", undefined],
      ["api/1h", undefined],
    ]);
  });

  it("counts by aligned windows if the windows of very many clients begin at times of their own", () => {
    const windows = new WorstWindows();
    const hour = 60 * MINUTE;
    for (let client = 0; client < 5000; client++) {
      const windowStart = START - client * 700;
      const second = hour / 1000 / 2;
      add(windows, second, true, {
        windowStart,
        windowEnd: windowStart + hour,
        client: `${client}`,
      });
    }
    const top = windows.top();
    expect(top.reduce((sum, { denied }) => sum + denied, 0)).toBe(5000);
    expect(top.length).toBeLessThan(4);
    expect(top.filter(({ start }) => Date.parse(start) % hour !== 0)).toEqual([]);
  });

  it("has bounded memory for a long log of short windows", () => {
    const windows = new WorstWindows();
    for (let second = 0; second < 20_000; second++) {
      const windowStart = START + second * 1000;
      add(windows, second, true, { windowStart, windowEnd: windowStart + 1000 });
    }
    expect(windows.top()).toHaveLength(10);
    expect(windows.openWindows).toBeLessThanOrEqual(62);
  });
});

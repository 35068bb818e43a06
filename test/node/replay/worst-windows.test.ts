import { describe, expect, it } from "vitest";
import { WorstWindows } from "../../../cli/replay/worst-windows.ts";
import { logged, START } from "./requests.ts";
import { verdictOn } from "./verdicts.ts";

const MINUTE = 60_000;

function add(windows: WorstWindows, second: number, denied: boolean, fields = {}) {
  const request = logged(second);
  windows.add(verdictOn(request, { denied, ...fields }));
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

  it("does not count requests of a window if another limit of the rule has denied some", () => {
    const windows = new WorstWindows();
    add(windows, 1, true);
    add(windows, 2, true, { policy: "api/1h", windowStart: START, windowEnd: START + 60 * MINUTE });
    expect(windows.top().map(({ policy, requests }) => [policy, requests])).toEqual([
      ["api", undefined],
      ["api/1h", undefined],
    ]);
  });
});

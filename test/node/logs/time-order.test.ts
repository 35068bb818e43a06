import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { LogCounts } from "../../../cli/logs/progress.ts";
import { TimeOrder } from "../../../cli/logs/time-order.ts";
import { propertyRuns } from "../../suite/runs.ts";

const requestAt = (at: number, target = "/"): LogRequest => ({
  at,
  method: "GET",
  target,
  host: undefined,
  ip: undefined,
  status: undefined,
  headers: undefined,
  responseHeaders: undefined,
  cf: undefined,
  length: 100,
});

/** Returns the times in the order in which they are handed out, and the times that are ready after each request. */
function order(
  times: readonly number[],
  maxDelayMs: number,
  bounds = { requests: 1e6, length: 1e9 },
) {
  const counts = new LogCounts();
  const ordered = new TimeOrder(maxDelayMs, counts, bounds);
  const ready: number[] = [];
  const all: LogRequest[] = [];
  for (const [index, at] of times.entries()) {
    ordered.add(requestAt(at, `/${index}`));
    all.push(...ordered.take());
    ready.push(all.length);
  }
  all.push(...ordered.finish());
  return {
    times: all.map(({ at }) => at),
    targets: all.map(({ target }) => target),
    ready,
    counts,
  };
}

describe("requests out of order", () => {
  it("are handed out in the order of their times, and in the order of the log at equal times", () => {
    const { times, targets, counts } = order([5000, 3000, 5000, 4000, 3000], 60_000);
    expect(times).toEqual([3000, 3000, 4000, 5000, 5000]);
    expect(targets).toEqual(["/1", "/4", "/3", "/0", "/2"]);
    expect(counts.late).toBe(0);
  });

  it("are ordered within a second if their times are finer", () => {
    expect(order([5200, 5100, 5100.5, 5000], 60_000).times).toEqual([5000, 5100, 5100.5, 5200]);
  });

  it("wait until a request more than the delay later was read", () => {
    expect(order([1000, 2000, 3000, 4000, 5000], 2000).ready).toEqual([0, 0, 0, 1, 2]);
    expect(order([1999, 3999, 4000, 4001, 6000], 2000).ready).toEqual([0, 0, 1, 1, 2]);
  });

  it("are late if they are out of order by more than the delay", () => {
    const { times, counts } = order([10_000, 8000, 7999, 0, 10_000, 8000], 2000);
    expect(times).toEqual([8000, 8000, 10_000, 10_000]);
    expect(counts.late).toBe(2);
    expect(counts.notes).toEqual([
      expect.stringContaining("out of order by up to 10s; those by more than 2s are late"),
    ]);
  });

  it("are late without a delay, but those of the same time are not", () => {
    const { times, counts } = order([1000, 1000, 2500, 2400, 2500], 0);
    expect(times).toEqual([1000, 1000, 2500, 2500]);
    expect(counts.late).toBe(1);
  });

  it("may have gaps of years between them", () => {
    const year = 31_536_000_000;
    expect(order([0, year, year + 5, 2 * year, 2 * year + 1000], 1000).ready).toEqual([
      0, 1, 1, 3, 3,
    ]);
  });

  it("are handed out early if more wait than memory should hold, with one note", () => {
    const times = Array.from({ length: 1000 }, (_, index) => index * 1000);
    const { ready, counts } = order(times, 1e9, { requests: 100, length: 1e9 });
    const waiting = ready.map((count, index) => index + 1 - count);
    expect(Math.max(...waiting)).toBeLessThanOrEqual(100);
    expect(counts.notes).toHaveLength(1);
    expect(counts.late).toBe(0);
    const byLength = order(times, 1e9, { requests: 1e6, length: 5000 });
    expect(byLength.ready.map((count, index) => index + 1 - count)).toSatisfy((all: number[]) =>
      all.every((waits) => waits <= 50),
    );
    expect(byLength.counts.notes).toHaveLength(1);
  });

  it("stay within the bounds also if all have the same time", () => {
    const { times, ready, counts } = order(new Array(1000).fill(7000), 1e9, {
      requests: 100,
      length: 1e9,
    });
    expect(times).toHaveLength(1000);
    expect(ready.at(-1)).toBeGreaterThanOrEqual(900);
    expect(counts.late).toBe(0);
  });

  it("are all handed out or late, in order, whatever their times are", () => {
    const time = fc.oneof(
      fc.nat(20_000),
      fc.double({ min: 0, max: 20_000, noNaN: true }),
      fc.nat(10 ** 12),
    );
    fc.assert(
      fc.property(
        fc.array(time, { maxLength: 60 }),
        fc.nat(5000),
        fc.integer({ min: 1, max: 20 }),
        (all, delay, max) => {
          const { times, counts } = order(all, delay, { requests: max, length: 1e9 });
          expect(times).toEqual([...times].sort((a, b) => a - b));
          expect(times.length + counts.late).toBe(all.length);
          let newest = Number.NEGATIVE_INFINITY;
          const inTime = all.filter((at) => {
            newest = Math.max(newest, at);
            return at >= newest - delay;
          });
          // Without an early release, exactly the requests beyond the delay are late.
          if (!counts.notes.some((note) => note.startsWith("Too many")))
            expect(counts.late).toBe(all.length - inTime.length);
        },
      ),
      propertyRuns(500),
    );
  });
});

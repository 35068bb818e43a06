import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { TimeOrder } from "../../../cli/logs/time-order.ts";
import { propertyRuns } from "../../suite/runs.ts";

const requestAt = (at: number, target = "/"): LogRequest => ({
  ...{ at, method: "GET", target, host: undefined, ip: undefined, status: undefined },
  headers: undefined,
});

/** Returns the requests that are handed out, those that are refused, and the most that waited. */
function order(times: readonly number[], maxWaiting?: number) {
  const ordered = new TimeOrder(maxWaiting);
  const all: LogRequest[] = [];
  let [refused, mostWaiting] = [0, 0];
  for (const [index, at] of times.entries()) {
    if (!ordered.add(requestAt(at, `/${index}`))) refused++;
    all.push(...ordered.take());
    mostWaiting = Math.max(mostWaiting, index + 1 - refused - all.length);
  }
  all.push(...ordered.take(true));
  return {
    times: all.map(({ at }) => at),
    targets: all.map(({ target }) => target),
    ...{ refused, mostWaiting },
  };
}

describe("requests out of order", () => {
  it("are handed out in the order of their times, and in the order of the log at equal times", () => {
    const { times, targets, refused } = order([5000, 3000, 5000, 4000, 3000.5, 3000]);
    expect(times).toEqual([3000, 3000, 3000.5, 4000, 5000, 5000]);
    expect(targets).toEqual(["/1", "/5", "/4", "/3", "/0", "/2"]);
    expect(refused).toBe(0);
  });

  it("are refused if a later request was handed out already", () => {
    expect(order([0, 1000, 61_001, 1000, 999])).toMatchObject({
      ...{ times: [0, 1000, 1000, 61_001], refused: 1 },
    });
  });

  it("are handed out early if more wait than memory should hold", () => {
    const times = Array.from({ length: 1000 }, (_, index) => index);
    expect(order(times, 100)).toMatchObject({ times, mostWaiting: 100, refused: 0 });
    const same = new Array(1000).fill(7000);
    expect(order(same, 100)).toMatchObject({ times: same, mostWaiting: 100, refused: 0 });
  });

  it("are all handed out or refused, in order, whatever their times are", () => {
    const time = fc.oneof(
      fc.nat(200_000),
      fc.double({ min: 0, max: 200_000, noNaN: true }),
      fc.nat(10 ** 12),
    );
    fc.assert(
      fc.property(fc.array(time, { maxLength: 60 }), (all) => {
        const { times, refused } = order(all);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect(times.length + refused).toBe(all.length);
        let newest = 0;
        const isLate = (at: number) => {
          newest = Math.max(newest, at);
          return at < newest - 60_000;
        };
        expect(refused).toBeLessThanOrEqual(all.filter(isLate).length);
      }),
      propertyRuns(500),
    );
  });
});

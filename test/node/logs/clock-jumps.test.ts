import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { LogCounts } from "../../../cli/logs/progress.ts";
import { ClockJumps, TimeOrder } from "../../../cli/logs/time-order.ts";

const HOUR = 3_600_000;
const MINUTE = 60_000;
const YEAR = 8760 * HOUR;
const START = Date.UTC(2026, 10, 1);

const timeOf = ({ at }: LogRequest) => at;

/** Orders times that stand for requests, and returns them as they are handed out. */
function order(times: readonly number[], maxDelayMs = MINUTE) {
  const counts = new LogCounts();
  const jumps = new ClockJumps(new TimeOrder(maxDelayMs, counts), counts, maxDelayMs);
  const taken: number[] = [];
  for (const at of times) {
    jumps.add({ at } as LogRequest, 100);
    taken.push(...jumps.take().map(timeOf));
  }
  return {
    taken: [...taken, ...jumps.finish().map(timeOf)],
    late: counts.late,
    notes: counts.notes,
  };
}

const seconds = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => from + index * 1000);

describe("a line with a wrong time", () => {
  it.each([
    ["first", 0],
    ["among the first", 7],
    ["in the middle", 5000],
    ["last", 9999],
  ])("far in the future makes no other line late: %s", (_, place) => {
    const right = seconds(START, 10_000);
    const times = right.toSpliced(place, 0, START + YEAR);
    const { taken, late } = order(times);
    expect(taken).toEqual([...right, START + YEAR]);
    expect(late).toBe(0);
  });

  it("is mentioned if many lines with other times follow", () => {
    const times = seconds(START, 300);
    expect(order(times).notes).toEqual([]);
    const { notes } = order(times.toSpliced(150, 0, START + YEAR));
    expect(notes).toEqual([expect.stringContaining("as if a clock had been wrong")]);
  });

  it("may occur 40 times", () => {
    const wrong = seconds(START + YEAR, 40);
    const right = seconds(START, 4000);
    const times = right.flatMap((at, index) =>
      index % 100 === 5 ? [at, wrong[(index / 100) | 0] as number] : [at],
    );
    expect(order(times)).toMatchObject({ taken: [...right, ...wrong], late: 0 });
  });

  it("far in the past counts as late", () => {
    const times = seconds(START, 300);
    expect(order(times.toSpliced(200, 0, START - YEAR))).toMatchObject({ taken: times, late: 1 });
  });
});

describe("a log with gaps", () => {
  it("goes on after a quiet night, in order", () => {
    const times = [...seconds(START, 500), ...seconds(START + 9 * HOUR, 500)];
    expect(order(times)).toMatchObject({ taken: times, late: 0 });
  });

  it("has all its requests in order if each hour has a minute of them, out of order", () => {
    const hours = Array.from({ length: 300 }, (_, hour) =>
      [...(hour % 2 === 0 ? [] : [59_000]), ...seconds(0, 50)].map(
        (ms) => START + hour * HOUR + ms,
      ),
    );
    const { taken, late, notes } = order(hours.flat());
    expect(taken).toEqual(hours.flat().sort((a, b) => a - b));
    expect({ late, notes }).toEqual({ late: 0, notes: [] });
  });

  it("has all its requests if each is hours after the one before", () => {
    const times = Array.from({ length: 1000 }, (_, index) => START + index * 5 * HOUR);
    expect(order(times)).toMatchObject({ taken: times, late: 0 });
  });

  it("counts lines as late as before, at the start too", () => {
    const times = [START, START + 3 * MINUTE, START, START + 4 * MINUTE];
    expect(order(times)).toMatchObject({
      taken: [START, START + 3 * MINUTE, START + 4 * MINUTE],
      late: 1,
    });
  });

  it("loses no request, whatever the times are", () => {
    const time = fc.oneof(
      fc.integer({ min: 0, max: 10 * MINUTE }),
      fc.integer({ min: 0, max: 50 * HOUR }),
      fc.constantFrom(YEAR, -YEAR),
    );
    fc.assert(
      fc.property(fc.array(time, { maxLength: 700 }), (offsets) => {
        const times = offsets.map((offset) => START + offset);
        const { taken, late } = order(times);
        expect(taken.length + late).toBe(times.length);
        expect(taken).toEqual(taken.toSorted((a, b) => a - b));
      }),
    );
  });
});

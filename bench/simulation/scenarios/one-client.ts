import type { Scenario } from "../scenario.ts";
import { ALL, FIVE_TIMES, HALF, HOUR, offered, SECOND, USUAL } from "./defaults.ts";

/** The whole of Weir's range; the chart is drawn from it. */
export function numbersOfIsolates(): Scenario[] {
  return [1, 10, 100, 1000, 10_000].flatMap((isolates) =>
    [HALF, ALL, FIVE_TIMES].map((demand) =>
      offered(demand, {
        ...USUAL,
        group: "isolates",
        name: `${many(isolates)}, ${demand.demand}`,
        isolates,
      }),
    ),
  );
}

/** Small limits are all blocks of one; with large ones, blocks are as large as they can be. */
export function limits(): Scenario[] {
  const LIMITS = [
    { limit: 50, isolates: 10, runs: 10 },
    { limit: 50, isolates: 100, runs: 10 },
    { limit: 100_000, isolates: 1, runs: 1 },
    { limit: 100_000, isolates: 100, runs: 1 },
    { limit: 100_000, isolates: 10_000, runs: 1 },
  ];
  return LIMITS.flatMap((each) =>
    [HALF, ALL, FIVE_TIMES].map((demand) => {
      const limit = each.limit.toLocaleString("en-US");
      const name = `limit ${limit}, ${many(each.isolates)}, ${demand.demand}`;
      return offered(demand, { ...USUAL, ...each, group: "limits", name });
    }),
  );
}

export function distances(): Scenario[] {
  return [1, 20, 100, 300].flatMap((roundTripMs) =>
    [10, 100].flatMap((isolates) =>
      [ALL, FIVE_TIMES].map((demand) => {
        const name = `${roundTripMs} ms away, ${many(isolates)}, ${demand.demand}`;
        const rest = { isolates, limit: 10_000, roundTripMs, runs: 1 };
        return offered(demand, { ...USUAL, ...rest, group: "distances", name });
      }),
    ),
  );
}

export function deaths(): Scenario[] {
  return [10, 100].flatMap((isolates) =>
    [0, 0.01, 0.1, 1].map((deathsPerMinute) => {
      const name = `${many(isolates)}, ${100 * deathsPerMinute} % die in a minute`;
      return offered(ALL, { ...USUAL, group: "deaths", name, isolates, deathsPerMinute, runs: 10 });
    }),
  );
}

export function clocks(): Scenario[] {
  return [50, SECOND, 10 * SECOND].map((skewMs) => {
    const name = `clocks off by up to ${skewMs} ms`;
    return offered(ALL, { ...USUAL, group: "clocks", name, isolates: 10, skewMs });
  });
}

export function losses(): Scenario[] {
  return [0.01, 0.05].map((lossShare) => {
    const name = `${100 * lossShare} % of calls get lost`;
    return offered(ALL, { ...USUAL, group: "losses", name, isolates: 10, lossShare });
  });
}

export function windows(): Scenario[] {
  return [SECOND, 10 * SECOND, HOUR].flatMap((windowMs) =>
    [ALL, FIVE_TIMES].map((demand) => {
      const name = `1,000 in ${windowMs / SECOND} s, ${demand.demand}`;
      return offered(demand, { ...USUAL, group: "windows", name, isolates: 10, windowMs });
    }),
  );
}

function many(isolates: number): string {
  return isolates === 1 ? "1 isolate" : `${isolates.toLocaleString("en-US")} isolates`;
}

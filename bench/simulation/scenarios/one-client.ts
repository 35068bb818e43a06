import type { Scenario } from "../scenario.ts";
import { ALL, DEFAULTS, FIVE_TIMES, HALF, HOUR, SECOND, withDemand } from "./defaults.ts";

/**
 * Returns scenarios with different numbers of isolates, up to the largest number for which Weir is
 * designed.
 */
export function numbersOfIsolates(): Scenario[] {
  return [1, 10, 100, 1000, 10_000].flatMap((isolates) =>
    [HALF, ALL, FIVE_TIMES].map((demand) =>
      withDemand(demand, {
        ...DEFAULTS,
        group: "isolates",
        name: `${isolatesName(isolates)}, ${demand.demand}`,
        isolates,
      }),
    ),
  );
}

/**
 * Returns scenarios with small limits, from which isolates lease single requests, and with large limits, from which
 * isolates lease blocks of the maximum size.
 */
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
      const name = `limit ${limit}, ${isolatesName(each.isolates)}, ${demand.demand}`;
      return withDemand(demand, { ...DEFAULTS, ...each, group: "limits", name });
    }),
  );
}

export function roundTrips(): Scenario[] {
  return [1, 20, 100, 300].flatMap((roundTripMs) =>
    [10, 100].flatMap((isolates) =>
      [ALL, FIVE_TIMES].map((demand) => {
        const name = `${roundTripMs} ms away, ${isolatesName(isolates)}, ${demand.demand}`;
        const rest = { isolates, limit: 10_000, roundTripMs, runs: 1 };
        return withDemand(demand, { ...DEFAULTS, ...rest, group: "round-trips", name });
      }),
    ),
  );
}

export function deaths(): Scenario[] {
  return [10, 100].flatMap((isolates) =>
    [0, 0.01, 0.1, 1].map((deathsPerMinute) => {
      const name = `${isolatesName(isolates)}, ${100 * deathsPerMinute} % die in a minute`;
      return withDemand(ALL, {
        ...DEFAULTS,
        group: "deaths",
        name,
        isolates,
        deathsPerMinute,
        runs: 10,
      });
    }),
  );
}

export function clocks(): Scenario[] {
  return [50, SECOND, 10 * SECOND].map((skewMs) => {
    const name = `clocks off by up to ${skewMs} ms`;
    return withDemand(ALL, { ...DEFAULTS, group: "clocks", name, isolates: 10, skewMs });
  });
}

export function losses(): Scenario[] {
  return [0.01, 0.05].map((lossShare) => {
    const name = `${100 * lossShare} % of calls get lost`;
    return withDemand(ALL, { ...DEFAULTS, group: "losses", name, isolates: 10, lossShare });
  });
}

export function windows(): Scenario[] {
  return [SECOND, 10 * SECOND, HOUR].flatMap((windowMs) =>
    [ALL, FIVE_TIMES].map((demand) => {
      const name = `1,000 in ${windowMs / SECOND} s, ${demand.demand}`;
      return withDemand(demand, { ...DEFAULTS, group: "windows", name, isolates: 10, windowMs });
    }),
  );
}

function isolatesName(isolates: number): string {
  return isolates === 1 ? "1 isolate" : `${isolates.toLocaleString("en-US")} isolates`;
}

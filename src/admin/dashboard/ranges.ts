import type { Resolution, StatisticsQuery } from "../../control/protocol.ts";

const HOUR_MS = 3_600_000;

/** The length of the buckets of each resolution, in milliseconds. */
export const STEP_MS: Readonly<Record<Resolution, number>> = {
  minute: 60_000,
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
};

/** A range of time up to now, which the pages show. */
export interface Range {
  /** The value of the parameter `range`. */
  readonly id: string;
  readonly label: string;
  readonly resolution: Resolution;
  /** The number of buckets. */
  readonly count: number;
}

const DEFAULT_RANGE: Range = { id: "1h", label: "1 hour", resolution: "minute", count: 60 };

/** All ranges. The control object keeps minutes for a day, hours for a month and days for a year. */
export const RANGES: readonly Range[] = [
  DEFAULT_RANGE,
  { id: "6h", label: "6 hours", resolution: "minute", count: 360 },
  { id: "2d", label: "2 days", resolution: "hour", count: 48 },
  { id: "30d", label: "30 days", resolution: "day", count: 30 },
  { id: "1y", label: "1 year", resolution: "day", count: 365 },
];

/** Returns the range with an id; the default range for an unknown id. */
export function rangeOf(id: string | undefined): Range {
  return RANGES.find((range) => range.id === id) ?? DEFAULT_RANGE;
}

/** Returns the query for the buckets of a range. The last bucket contains `now`. */
export function queryOf(
  range: Pick<Range, "resolution" | "count">,
  now: number,
  rule?: string,
): StatisticsQuery {
  const step = STEP_MS[range.resolution];
  const until = (Math.floor(now / step) + 1) * step;
  const from = until - range.count * step;
  const query = { resolution: range.resolution, from, until };
  return rule === undefined ? query : { ...query, rule };
}

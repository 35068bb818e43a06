import type { Context } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import type { Resolution, StatisticsQuery } from "../../control/protocol.ts";
import { THEMES } from "./components.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The length of the buckets of each resolution, in milliseconds. */
export const STEP_MS: Readonly<Record<Resolution, number>> = {
  minute: 60_000,
  hour: HOUR_MS,
  day: DAY_MS,
};

/** A time up to now, which the pages show. */
export interface Range {
  /** The value of the parameter `range`. */
  readonly id: string;
  readonly label: string;
  readonly resolution: Resolution;
  /** The number of buckets. */
  readonly count: number;
  /** The number of buckets in a row of the table beside a chart. */
  readonly bucketsPerRow: number;
}

const DEFAULT_RANGE: Range = {
  id: "1h",
  label: "1 hour",
  resolution: "minute",
  count: 60,
  bucketsPerRow: 5,
};

/** All ranges. The control object keeps minutes for a day, hours for a month and days for a year. */
export const RANGES: readonly Range[] = [
  DEFAULT_RANGE,
  { id: "6h", label: "6 hours", resolution: "minute", count: 360, bucketsPerRow: 30 },
  { id: "2d", label: "2 days", resolution: "hour", count: 48, bucketsPerRow: 4 },
  { id: "30d", label: "30 days", resolution: "day", count: 30, bucketsPerRow: 2 },
  { id: "1y", label: "1 year", resolution: "day", count: 365, bucketsPerRow: 30 },
];

/** Returns the range with an id; the default range for an unknown id. */
export function rangeOf(id: string | undefined): Range {
  return RANGES.find((range) => range.id === id) ?? DEFAULT_RANGE;
}

/** Returns the query for the buckets of a range. The last bucket is the one that contains `now`. */
export function queryOf(range: Range, now: number, rule?: string): StatisticsQuery {
  const step = STEP_MS[range.resolution];
  const until = (Math.floor(now / step) + 1) * step;
  const from = until - range.count * step;
  const query = { resolution: range.resolution, from, until };
  return rule === undefined ? query : { ...query, rule };
}

type Theme = (typeof THEMES)[number]["id"];

const COOKIE = "weir-theme";
const YEAR_S = 365 * 86_400;

/** Returns the theme that the operator has chosen. */
export function readTheme(c: Context): Theme {
  return themeOf(getCookie(c, COOKIE));
}

/** Keeps the operator's choice in a cookie. The cookie is no secret and selects nothing else. */
export function keepTheme(c: Context, chosen: string): void {
  setCookie(c, COOKIE, themeOf(chosen), {
    path: "/_weir",
    httpOnly: true,
    secure: true,
    sameSite: "Lax",
    maxAge: YEAR_S,
  });
}

function themeOf(id: string | undefined): Theme {
  return THEMES.find((theme) => theme.id === id)?.id ?? "auto";
}

import type { ClientEffect, RuleEffect } from "../overrides/override.ts";
import type { Denials } from "../statistics/denials.ts";

// Formats numbers and times for people: in the dashboard, in the HTML reports and on the terminal. The notation is
// `12,345`, `4.1%`, `1h 52m`, `7.5 ms`, `$12.50`, `2026-11-22 17:04:20 UTC`.

const COUNT = new Intl.NumberFormat("en-US");
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const DOLLARS = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});

/**
 * Formats a number, such as `12,345`.
 *
 * @param noun the counted thing, in the singular: `1 rule`, `2 rules`
 */
export function formatCount(count: number, noun?: string): string {
  const number = COUNT.format(count);
  return noun === undefined ? number : `${number} ${noun}${count === 1 ? "" : "s"}`;
}

/** Formats a number in at most six characters, such as `1.23M`. */
export function formatShortCount(count: number): string {
  return Math.abs(count) < 100_000 ? COUNT.format(count) : SHORT.format(count);
}

/** Formats a number that is unknown if the log lacks it. */
export function formatCountIfKnown(count: number | undefined): string {
  return count === undefined ? "unknown" : formatCount(count);
}

/** Formats a number that may be an estimate, such as `about 12,000`. */
export function formatEstimate(count: number, isEstimate: boolean, noun?: string): string {
  return `${isEstimate ? "about " : ""}${formatCount(count, noun)}`;
}

/**
 * Formats a part of a whole as a percentage with about two digits. Only 0 becomes `0%`, and only the whole `100%`.
 *
 * @returns `–` if the whole is not more than 0
 */
export function formatPercent(part: number, whole = 1): string {
  if (!(whole > 0)) return "–";
  const percent = (100 * part) / whole;
  if (percent === 0 || percent === 100) return `${percent}%`;
  if (percent < 0.01) return "< 0.01%";
  if (percent > 99.9 && percent < 100) return "> 99.9%";
  return `${percent.toFixed(percent < 1 ? 2 : 1)}%`;
}

/** Formats a price in US dollars, with as many digits as a small price needs. */
export function formatDollars(dollars: number): string {
  if (dollars > 0 && dollars < 0.0001) return "< $0.0001";
  return `$${dollars > 0 && dollars < 0.1 ? dollars.toFixed(4) : DOLLARS.format(dollars)}`;
}

/** Formats a latency, such as `7.5 ms` or `1.2 s`. */
export function formatMilliseconds(ms: number): string {
  if (ms >= 1000) return `${Number((ms / 1000).toPrecision(2))} s`;
  return `${Number(ms.toPrecision(2))} ms`;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
] as const;

/**
 * Formats a length of time with at most two units, such as `45s`, `1h 52m` or `2d 3h`. Rounds up to whole seconds, so
 * that a wait never seems to be over too early.
 */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const first = UNITS.findIndex(([, length]) => seconds >= length);
  let rest = seconds;
  const parts = UNITS.map(([unit, length]) => {
    const count = Math.floor(rest / length);
    rest %= length;
    return count > 0 ? `${formatCount(count)}${unit}` : "";
  });
  return first === -1
    ? "0s"
    : parts
        .slice(first, first + 2)
        .filter(Boolean)
        .join(" ");
}

/** Formats a time relative to now, such as `3m 5s ago` or `in 1h 52m`. */
export function formatRelativeTime(at: number, now: number): string {
  if (Math.abs(at - now) < 1000) return "now";
  return at < now ? `${formatDuration(now - at)} ago` : `in ${formatDuration(at - now)}`;
}

/** Formats a time, such as `2026-11-22 17:04:20 UTC`. A time outside the calendar is `unknown`. */
export function formatTime(at: number): string {
  const time = formatUtcTime(at);
  return time === "unknown" ? time : `${time} UTC`;
}

/** Formats a time for a place that already says UTC, such as `2026-11-22 17:04:20`. */
export function formatUtcTime(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "unknown";
  return date.toISOString().slice(0, 19).replace("T", " ");
}

/** Formats `2026-11-22 17:04:00 – 17:05:00`, with the second date if the range ends on another day. */
export function formatUtcRange(from: number, to: number): string {
  const [start, end] = [formatUtcTime(from), formatUtcTime(to)];
  const isSameDay = start.slice(0, 10) === end.slice(0, 10);
  return `${start} – ${isSameDay ? end.slice(11) : end}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Formats a date in UTC without its year, for axes: `22 Nov`. */
export function formatShortDate(at: number): string {
  const date = new Date(at);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** What happened to denied requests, by the mode of the denial. */
export const DENIAL_MODES = {
  enforce: "denied",
  local: "denied: the store failed",
  shadow: "shadow: passed",
  ahead: "passed ahead",
} as const satisfies Record<Denials["mode"], string>;

const MODES = {
  enforce: "enforced",
  shadow: "in shadow mode: denies nothing",
  off: "off: does not apply",
} as const;

/** Describes the effect of an override in words. */
export function formatEffect(effect: ClientEffect | RuleEffect): string {
  if (!("kind" in effect)) {
    const { mode, factor } = effect;
    return [mode && MODES[mode], factor !== undefined && `all limits × ${factor}`]
      .filter(Boolean)
      .join(", ");
  }
  switch (effect.kind) {
    case "limits":
      return Object.entries(effect.limits)
        .map(([policy, limit]) => `${policy} = ${formatCount(limit)}`)
        .join(", ");
    case "factor":
      return `all limits × ${effect.factor}`;
    case "unlimited":
      return "not limited";
    case "blocked":
      return "blocked: every request is denied";
  }
}

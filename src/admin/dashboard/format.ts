const COUNT = new Intl.NumberFormat("en-US");
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

/** Returns a number with separators, such as `12,345`. */
export function countText(count: number): string {
  return COUNT.format(count);
}

/** Returns a number of at most six characters, such as `1.23M`. */
export function shortCount(count: number): string {
  return Math.abs(count) < 10_000 ? COUNT.format(count) : SHORT.format(count);
}

/** Returns `1 rule` or `2 rules`. */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Returns a share as a percentage with about two digits; `–` if there is no whole. */
export function percentText(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const percent = (100 * part) / whole;
  if (percent === 0 || percent === 100) return `${percent}%`;
  if (percent < 0.01) return "< 0.01%";
  // A share that only rounding makes whole is not whole.
  if (percent > 99.9) return "> 99.9%";
  return `${percent.toFixed(percent < 1 ? 2 : 1)}%`;
}

/** Returns a price in US dollars, with as many digits as a small price needs. */
export function dollarsText(dollars: number): string {
  if (dollars > 0 && dollars < 0.01) return `$${dollars.toPrecision(2)}`;
  return `$${new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(dollars)}`;
}

/** Returns a duration in milliseconds or seconds, such as `7.5 ms`. */
export function millisecondsText(ms: number): string {
  if (ms >= 1000) return `${Number((ms / 1000).toPrecision(2))} s`;
  return `${Number(ms.toPrecision(2))} ms`;
}

const UNITS = [
  { name: "day", ms: 86_400_000 },
  { name: "h", ms: 3_600_000 },
  { name: "min", ms: 60_000 },
  { name: "s", ms: 1000 },
] as const;

/** Returns a duration such as `3 min`, `1 h 52 min` or `2 days 3 h`. Durations below a second are `0 s`. */
export function durationText(ms: number): string {
  const index = UNITS.findIndex((each) => ms >= each.ms);
  const unit = UNITS[index] ?? UNITS[3];
  const whole = unitText(ms, unit);
  // The half of an hour matters to operators who wait for an end, the seconds of a minute do not.
  const part = unit.ms > 60_000 ? UNITS[index + 1] : undefined;
  const rest = ms % unit.ms;
  return part && rest >= part.ms ? `${whole} ${unitText(rest, part)}` : whole;
}

function unitText(ms: number, { name, ms: unitMs }: (typeof UNITS)[number]): string {
  const count = Math.floor(ms / unitMs);
  return `${countText(count)} ${name}${name === "day" && count !== 1 ? "s" : ""}`;
}

/** Returns a time relative to now, such as `3 min ago` or `in 1 h 52 min`. */
export function relativeTime(at: number, now: number): string {
  if (Math.abs(at - now) < 1000) return "now";
  return at < now ? `${durationText(now - at)} ago` : `in ${durationText(at - now)}`;
}

/** Returns a time in UTC, such as `2026-11-22 17:04:20 UTC`. Times that no calendar has are `unknown`. */
export function exactTime(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "unknown";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Returns a date in UTC without its year, such as `22 Nov`. */
export function shortDate(at: number): string {
  const date = new Date(at);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** Returns a time in UTC without its year, such as `22 Nov 17:04`. */
export function shortTime(at: number): string {
  return `${shortDate(at)} ${new Date(at).toISOString().slice(11, 16)}`;
}

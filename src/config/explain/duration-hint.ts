import { isRecord } from "../fields.ts";
import { formatDuration, MAX_WINDOW_SECONDS, parseDuration } from "../window.ts";

/** The length of each unit in seconds. A month has 30 days, a year 52 weeks. */
const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(ms|msecs?|millis|milliseconds?)$/i, 0.001],
  [/^(s|secs?|seconds?)$/i, 1],
  [/^(m|mins?|minutes?)$/i, 60],
  [/^(h|hrs?|hours?)$/i, 3600],
  [/^(d|days?)$/i, 86_400],
  [/^(w|wks?|weeks?)$/i, 604_800],
  [/^(mo|months?)$/i, 30 * 86_400],
  [/^(y|yrs?|years?)$/i, 52 * 604_800],
];

/**
 * Suggests a length of time in Weir's notation for a value in the notation of another program: `"1
 * minute"`, `"1M"`, `"60"`, `"1m30s"`, `"PT1M"`, `"60000ms"`, or a number of milliseconds.
 */
export function durationHint(given: unknown): string | undefined {
  if (given === true) return 'write a length of time, such as "15m"';
  if (Array.isArray(given)) return given.length === 1 ? lengthHint(given[0]) : undefined;
  if (typeof given === "number" && given > 0 && given < MAX_WINDOW_SECONDS) {
    return `write a whole number of seconds, such as ${Math.ceil(given)}`;
  }
  const seconds = secondsOf(given);
  if (seconds === undefined) return undefined;
  if (seconds < 1) return 'the shortest length is "1s"';
  if (seconds > MAX_WINDOW_SECONDS) return 'the longest length is "52w"';
  const duration = parseDuration(seconds);
  if (duration === undefined) return undefined;
  const text = JSON.stringify(formatDuration(duration));
  if (typeof given === "string" && /^\s*\d+(\.0+)?\s*$/.test(given)) {
    return `write ${duration}, a number of seconds, or ${text}`;
  }
  return typeof given === "number"
    ? `write ${text} if you mean milliseconds: a number is in seconds`
    : `write ${text}`;
}

/** Returns a length of time in Weir's notation, such as `"1m"`, if a value can be read as one. */
export function durationText(given: unknown, unitSeconds = 1): string | undefined {
  const seconds = typeof given === "number" ? given * unitSeconds : secondsOf(given);
  const duration = seconds === undefined ? undefined : parseDuration(seconds);
  return duration === undefined ? undefined : JSON.stringify(formatDuration(duration));
}

/** Suggests a length for a value in a list or an object, where a valid length is wrong too. */
function lengthHint(given: unknown): string | undefined {
  const text = durationText(given);
  return text === undefined ? durationHint(given) : `write ${text}`;
}

/** Reads an object such as `{ minutes: 1 }`, `{ hours: 1, minutes: 30 }` and `{ duration: "1h" }`. */
function secondsOfObject(given: Readonly<Record<string, unknown>>): number | undefined {
  const entries = Object.entries(given);
  const [[name, value] = [""]] = entries;
  if (entries.length === 1 && /^(duration|time|length|window|period|for|value)$/i.test(name)) {
    return typeof value === "object" ? undefined : secondsOf(value);
  }
  const seconds = entries.map(([unit, count]) =>
    typeof count === "number" ? count * (unitOf(unit) ?? Number.NaN) : Number.NaN,
  );
  const total = seconds.reduce((sum, each) => sum + each, 0);
  return entries.length === 0 || entries.length > UNITS.length || Number.isNaN(total)
    ? undefined
    : total;
}

function secondsOf(given: unknown): number | undefined {
  if (isRecord(given)) return secondsOfObject(given);
  // Only a number that is too large can be meant as milliseconds, because other whole numbers are valid.
  if (typeof given === "number") return given > MAX_WINDOW_SECONDS ? given / 1000 : given;
  if (typeof given !== "string") return undefined;
  const [, hours, minutes, rest = "0"] = /^(\d{1,3}):(\d\d)(?::(\d\d))?$/.exec(given.trim()) ?? [];
  if (hours && minutes) return Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
  const text = given
    .trim()
    .replace(/(?<=\d)_(?=\d{3})/g, "")
    .replace(/^PT?(?=\d)/i, "")
    .replace(/^(an?|one|per|every|each)\s+/i, "1 ");
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  if (/^[a-z]+$/i.test(text)) return unitOf(text);
  if (text.length > 60 || !/^(\d+(\.\d+)?\s*[a-z]+[\s,]*)+$/i.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)];
  const seconds = parts.map(
    ([, count, unit]) => Number(count) * (unitOf(unit ?? "") ?? Number.NaN),
  );
  const total = Math.round(seconds.reduce((sum, each) => sum + each, 0) * 1000) / 1000;
  return Number.isNaN(total) ? undefined : total;
}

function unitOf(word: string): number | undefined {
  return UNITS.find(([pattern]) => pattern.test(word))?.[1];
}

/** Suggests a number of milliseconds for a length of time such as `"2s"`. */
export function millisecondsHint(given: unknown): string | undefined {
  const duration = typeof given === "string" ? durationText(given) : undefined;
  const [, count, unit] = /^"(\d+)([sm])"$/.exec(duration ?? "") ?? [];
  return (
    count && `write ${Number(count) * (unit === "s" ? 1000 : 60_000)}, a number of milliseconds`
  );
}

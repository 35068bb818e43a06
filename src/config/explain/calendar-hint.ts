import { CALENDAR_UNITS } from "../calendar.ts";
import { durationHint, durationText } from "./duration-hint.ts";
import { nearestName } from "./given-value.ts";

/** Words for one unit of the calendar, such as `monthly`, `1 month`, `1mo` and `P1M`. */
const UNIT_WORDS: readonly (readonly [RegExp, string])[] = [
  [/^(monthly|((a|one|per|every|each|1) *)?(mo|months?)|P1M)$/i, "month"],
  [/^(yearly|annual(ly)?|((a|one|per|every|each|1) *)?(y|yr|years?)|P1Y)$/i, "year"],
];

/** Suggests the length of a window. */
export function windowHint(given: unknown): string | undefined {
  const value: unknown = Array.isArray(given) && given.length === 1 ? given[0] : given;
  if (value === "1M") return 'write "1m" for a minute, or "month" for a month of the calendar';
  const unit = unitOf(value);
  if (unit !== undefined) return `write ${JSON.stringify(unit)}`;
  if (typeof value === "string" && /^(daily|weekly)$/i.test(value.trim())) {
    const [fixed, unit] = /^d/i.test(value.trim()) ? ["1d", "day"] : ["1w", "week"];
    return `write "${fixed}", or "${unit}" for a ${unit} of the calendar`;
  }
  return durationHint(given);
}

/** Returns the length of a window in Weir's notation, such as `"1m"` and `"month"`. */
export function windowText(given: unknown, unitSeconds = 1): string | undefined {
  const unit = unitOf(given);
  return unit === undefined ? durationText(given, unitSeconds) : JSON.stringify(unit);
}

function unitOf(given: unknown): string | undefined {
  if (typeof given !== "string") return undefined;
  const text = given.trim();
  const same = CALENDAR_UNITS.find((unit) => unit === text.toLowerCase() && unit !== text);
  return UNIT_WORDS.find(([pattern]) => pattern.test(text))?.[1] ?? same;
}

/** Short names of time zones that no runtime knows, or that it reads as an offset. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  pst: "America/Los_Angeles",
  pdt: "America/Los_Angeles",
  pt: "America/Los_Angeles",
  cst: "America/Chicago",
  cdt: "America/Chicago",
  edt: "America/New_York",
  et: "America/New_York",
  bst: "Europe/London",
  cest: "Europe/Berlin",
  ist: "Asia/Kolkata",
  jst: "Asia/Tokyo",
  aest: "Australia/Sydney",
  z: "UTC",
};

/** Suggests the name of a time zone. */
export function timeZoneHint(given: unknown): string | undefined {
  if (typeof given !== "string" || given.length > 60) return undefined;
  const text = given.trim().replaceAll(" ", "_");
  if (/^[A-Za-z]{0,5}[+-]\d/.test(text)) {
    return 'write the name of a place, such as "Europe/Berlin": an offset has no summer time';
  }
  const short = SHORT_NAMES[text.toLowerCase()];
  if (short !== undefined) return `write ${JSON.stringify(short)}`;
  const names = Intl.supportedValuesOf?.("timeZone") ?? [];
  const city = names.find((name) => name.toLowerCase().endsWith(`/${text.toLowerCase()}`));
  const name = city ?? nearestName(text, names);
  return name === undefined ? undefined : `write ${JSON.stringify(name)}`;
}

import { isRecord } from "../fields.ts";
import { durationHint, durationText } from "./duration-hint.ts";

/**
 * Suggests a ban in Weir's notation for one or several lengths in another notation: `"1m, 10m"`,
 * `{ durations: ["1m", "10m"] }`. A single length, also an element of a list, is a length of time.
 */
export function banHint(given: unknown): string | undefined {
  if (typeof given === "string")
    return lengthsHint(given.split(/\s*[,;|>→]+\s*|(?<=\d[a-z])\s+(?=\d)/)) ?? durationHint(given);
  const list = isRecord(given) ? Object.values(given).find(Array.isArray) : undefined;
  return (list && lengthsHint(list)) ?? durationHint(given);
}

/** Suggests a list for the field `lengths`. */
export function lengthsHint(given: unknown): string | undefined {
  if (!Array.isArray(given))
    return typeof given === "string" ? banHint(given) : durationHint(given);
  const texts = given.map((length) => durationText(length));
  return given.length > 1 && texts.every(Boolean) ? `write [${texts.join(", ")}]` : undefined;
}

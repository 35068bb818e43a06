import { isRecord } from "../fields.ts";
import { durationHint, durationText } from "./duration-hint.ts";

/**
 * Suggests a ban in Weir's notation for lengths in another notation, such as `"1m, 10m"` or `{
 * durations: ["1m", "10m"] }`. For a single length, the suggestion is a length of time.
 */
export function banHint(given: unknown): string | undefined {
  if (typeof given === "string")
    return lengthsHint(given.split(/\s*[,;|>→]+\s*|(?<=\d[a-z])\s+(?=\d)/)) ?? durationHint(given);
  const list = isRecord(given) ? Object.values(given).find(Array.isArray) : undefined;
  return (list && lengthsHint(list)) ?? durationHint(given);
}

/** Suggests a list for the field `lengths`. */
export function lengthsHint(given: unknown): string | undefined {
  if (!Array.isArray(given)) {
    const hint = typeof given === "string" ? banHint(given) : durationHint(given);
    const length = durationText(given);
    return length && !hint?.startsWith("write [") ? `write [${length}]` : hint;
  }
  const texts = given.map((length) => durationText(length));
  return given.length > 1 && texts.every(Boolean) ? `write [${texts.join(", ")}]` : undefined;
}

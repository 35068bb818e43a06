import { windowText } from "./calendar-hint.ts";

/** A limit together with its window, as in nginx's `10r/s` and in `100/hour`. */
const RATE = /^\s*([\d_.,]+)\s*(?:r|req|reqs|requests?)?\s*(?:\/|per)\s*([\d\s]*[a-z]+)\s*$/i;

/** Returns a limit and a window for a text such as `10r/s`; undefined for any other value. */
export function rateOf(given: unknown): { limit: number; window: string } | undefined {
  const [, count = "", time = ""] = (typeof given === "string" && RATE.exec(given)) || [];
  const limit = wholeNumberOf(count);
  const window = windowText(time);
  return limit === undefined || window === undefined ? undefined : { limit, window };
}

/** Returns the whole number that a text holds: 1000 for `"1,000"`, `"1_000"` and `"1k"`. */
export function wholeNumberOf(given: unknown): number | undefined {
  if (typeof given !== "string") return undefined;
  const [, digits = "", unit = ""] =
    /^\s*\/?(\d+(?:[_,' ]\d{3})*(?:\.0+)?)\s*(k|m)?\s*$/i.exec(given) ?? [];
  if (digits === "") return undefined;
  const factor = { k: 1000, m: 1_000_000 }[unit.toLowerCase()] ?? 1;
  return Number(digits.replace(/[_,' ]/g, "")) * factor;
}

/**
 * Suggests a whole number.
 *
 * @param allowed the message of the schema, which has the lowest and the highest number
 */
export function numberHint(given: unknown, allowed: string): string | undefined {
  const [, min, max] =
    /from (\d+)\D+ to (\d+)/.exec(allowed.replace(/,/g, "")) ??
    /from (\d+) to (\d+)/.exec(allowed) ??
    [];
  const isAllowed = (value: number) => value >= Number(min ?? 0) && value <= Number(max ?? 0);
  const whole = wholeNumberOf(given);
  if (whole !== undefined && isAllowed(whole)) return `write ${whole}`;
  if (typeof given !== "number" || Number.isInteger(given) || !Number.isFinite(given))
    return undefined;
  const [below, above] = [Math.floor(given), Math.ceil(given)];
  const choices = [below, above].filter(isAllowed);
  return choices.length > 0 ? `write ${choices.join(" or ")}` : undefined;
}

/** Suggests a limit, or explains how to have no limit. */
export function limitHint(given: unknown, allowed: string): string | undefined {
  if (typeof given === "function") return "write a number; for different limits, write tiers";
  const rate = rateOf(given);
  if (rate) return `write limit: ${rate.limit}, window: ${rate.window}`;
  const isUnlimited =
    given === null ||
    given === false ||
    (typeof given === "number" && (given < 0 || given > 1e15)) ||
    (typeof given === "string" && /^(none|unlimited|infinity|-1|no)$/i.test(given.trim()));
  if (isUnlimited) return "for no limit, remove the rule, or use exempt or match.except";
  return numberHint(given, allowed);
}

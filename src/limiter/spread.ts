/**
 * The number of digits of an identity that determine the offset. These digits are 48 uniform bits
 * of a hash.
 */
const SPREAD_DIGITS = 8;
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * Returns the offset of a client's windows in milliseconds, for rules with `start: "spread"`. The
 * offset is always the same for one client. Different clients usually have different offsets, so
 * that their windows do not all begin at once.
 */
export function spreadOf(identity: string, windowMs: number): number {
  let number = 0;
  for (const digit of identity.slice(0, SPREAD_DIGITS)) {
    number = number * 64 + Math.max(0, BASE64URL.indexOf(digit));
  }
  return number % windowMs;
}

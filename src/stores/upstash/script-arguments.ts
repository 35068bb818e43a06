import { banKey, inBothModes, strikesKey } from "../../engine/bans.ts";
import {
  type Counter,
  longestWindowMs,
  storedKey,
  windowAt,
  windowStart,
} from "../../engine/counter.ts";
import type { Clock } from "./script.ts";

/** The KEYS of a counter, in the order that `createScript` describes. */
export function keysOf(counter: Counter, clock: Clock, now: number): string[] {
  const keyOf = (each: Counter) => (clock === "edge" ? storedKey(each, now) : each.key);
  const keys = [keyOf(counter)];
  if (counter.banMs) keys.push(banKey(counter));
  if (counter.escalation) keys.push(strikesKey(counter));
  if (counter.alternative) keys.push(keyOf(counter.alternative));
  return keys;
}

/**
 * Returns the counter in both modes, with the keys of a ban and of strikes. A reset must remove
 * these keys even if the rule has no ban, only one length or another mode now, because an earlier
 * deployment of the rule may have written them. A reset ignores the lengths.
 */
export function withBanKeys(counter: Counter): Counter[] {
  const escalation = { lengthsMs: [1], forgetAfterMs: 1 };
  return inBothModes({ ...counter, banMs: 1, escalation });
}

/** The ARGV of a counter, in the order that `createScript` describes. */
export function argumentsOf(counter: Counter, now: number): number[] {
  const { limit, windowMs, offsetMs, cost, ceiling, block = 0, alternative } = counter;
  const flag = (set = false) => Number(set);
  const windows = counter.calendar ? [0, longestWindowMs(counter)] : [windowMs, offsetMs];
  const kind = [flag(counter.rollsOver), flag(counter.checkOnly), block];
  const ban = banArguments(counter, flag(counter.neverBans));
  const other = alternative ? [1, alternative.limit, alternative.ceiling] : [0];
  const calendar = counter.calendar ? calendarArguments(counter, now) : [];
  return [limit, ...windows, cost, ceiling, ...kind, ...ban, ...calendar, ...other];
}

/**
 * Returns the number of the previous window, its start, and the starts of the three windows after
 * it.
 */
function calendarArguments(counter: Counter, now: number): number[] {
  const previous = windowAt(now, counter).index - 1;
  return [previous, ...[0, 1, 2, 3].map((number) => windowStart(counter, previous + number))];
}

function banArguments({ banMs = 0, escalation }: Counter, neverBans: number): number[] {
  if (!escalation) return [banMs, neverBans];
  const { lengthsMs, forgetAfterMs } = escalation;
  return [-lengthsMs.length, neverBans, ...lengthsMs, forgetAfterMs];
}

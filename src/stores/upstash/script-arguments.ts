import { banKey, type Counter, storedKey } from "../../engine/counter.ts";
import type { Clock } from "./script.ts";

/** The KEYS of a counter, in the order that `createScript` describes. */
export function keysOf(counter: Counter, clock: Clock, now: number): string[] {
  const keyOf = (each: Counter) => (clock === "edge" ? storedKey(each, now) : each.key);
  const keys = [keyOf(counter)];
  if (counter.banMs) keys.push(banKey(counter));
  if (counter.alternative) keys.push(keyOf(counter.alternative));
  return keys;
}

/** The ARGV of a counter, in the order that `createScript` describes. */
export function argumentsOf(counter: Counter): number[] {
  const { limit, windowMs, offsetMs, cost, ceiling, block = 0, banMs = 0, alternative } = counter;
  const flag = (set = false) => Number(set);
  const kind = [flag(counter.rollsOver), flag(counter.checkOnly), block];
  const ban = [banMs, flag(counter.neverBans)];
  const other = alternative ? [1, alternative.limit, alternative.ceiling] : [0];
  return [limit, windowMs, offsetMs, cost, ceiling, ...kind, ...ban, ...other];
}

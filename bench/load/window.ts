import { setTimeout as delay } from "node:timers/promises";

/**
 * Waits, if need be, until a window has begun that does not end within the time that is needed. A
 * run over a window's end would be admitted twice the limit, and rightly.
 *
 * All subjects place their windows at the epoch's multiples.
 */
export async function untilWindowHasRoom(
  windowMs: number | undefined,
  neededMs: number,
): Promise<void> {
  if (windowMs === undefined) return;
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < neededMs) await delay(leftMs + 50);
}

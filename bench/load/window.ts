import { setTimeout as delay } from "node:timers/promises";

/**
 * How long to wait after the end of a window, in milliseconds, so that every clock has reached the
 * next window.
 */
const CLOCK_MARGIN_MS = 50;

/**
 * Waits for the next window if the current window ends within the next `neededMs` milliseconds. A run that crosses the
 * end of a window may admit up to twice the limit, which the bench would report as an error.
 *
 * All subjects start their windows at multiples of `windowMs` since the Unix epoch.
 *
 * @param windowMs the length of the subject's windows; undefined if it has none: the function then returns at once
 */
export async function waitForWindow(windowMs: number | undefined, neededMs: number): Promise<void> {
  if (windowMs === undefined) return;
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < neededMs) await delay(leftMs + CLOCK_MARGIN_MS);
}

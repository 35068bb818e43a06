import { setTimeout as delay } from "node:timers/promises";

/** How long to wait after the end of a window, so that every clock is in the next one, in milliseconds. */
const CLOCK_MARGIN_MS = 50;

/**
 * Waits for the next window if the current one ends within the next `neededMs` milliseconds. A run that
 * crosses the end of a window may be admitted up to twice the limit, and the bench would report an error.
 *
 * All subjects start their windows at multiples of `windowMs` since the Unix epoch.
 *
 * @param windowMs undefined for a subject without windows: then the function returns at once
 */
export async function waitForWindow(windowMs: number | undefined, neededMs: number): Promise<void> {
  if (windowMs === undefined) return;
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < neededMs) await delay(leftMs + CLOCK_MARGIN_MS);
}

import { setTimeout as delay } from "node:timers/promises";

/**
 * On a busy machine, a test that needs a single window takes at most this time, in milliseconds.
 */
const NEEDED_MS = 15_000;

/**
 * Waits for the next window if the current one ends within 15 s, so that all requests of a test are in one window.
 *
 * @param windowMs the length of the test's longest window, in milliseconds. The window must begin at a multiple of its
 *   length since the epoch
 */
export async function awayFromWindowEdge(windowMs: number): Promise<void> {
  const remainingMs = windowMs - (Date.now() % windowMs);
  if (remainingMs < NEEDED_MS) await delay(remainingMs + 1);
}

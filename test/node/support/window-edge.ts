import { setTimeout as delay } from "node:timers/promises";

/** The maximum time in milliseconds of tests that need a single window, on a busy machine. */
const NEEDED_MS = 15_000;

/**
 * Waits for the next window if the current one ends within 15 s, so that all requests of a test are in
 * one window.
 *
 * @param windowMs the longest window of the test that begins at a multiple of its length since the epoch
 */
export async function awayFromWindowEdge(windowMs: number): Promise<void> {
  const remainingMs = windowMs - (Date.now() % windowMs);
  if (remainingMs < NEEDED_MS) await delay(remainingMs + 1);
}

import { setTimeout as delay } from "node:timers/promises";

/** What tests of one window take at most, on a machine that has other things to do, in milliseconds. */
const NEEDED_MS = 15_000;

/**
 * Waits for the next window when the current one ends within 15 s, for requests of a test not to stand
 * in two windows.
 *
 * @param windowMs the longest window of the test; those that begin with the epoch's multiples
 */
export async function awayFromWindowEdge(windowMs: number): Promise<void> {
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < NEEDED_MS) await delay(leftMs + 1);
}

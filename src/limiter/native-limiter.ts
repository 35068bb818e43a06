import type { AppliedRule } from "../request/applied-rule.ts";
import { Deadline } from "../stores/deadline.ts";

/** Cloudflare's rate limiting binding. The binding counts per location, and only approximately. */
export type NativeLimiter = Pick<RateLimit, "limit">;

/**
 * The longest period of Cloudflare's limiter, in milliseconds. After this time the limiter has
 * quota again.
 */
export const NATIVE_PERIOD_MS = 60_000;

/**
 * Returns the maximum time that a decision waits for the native limiter, in milliseconds. 20 ms
 * suffice, because the native limiter is meant to run on the same machine. The native limiter
 * shares the deadline with the store, so it gets at most half of the deadline.
 */
export function nativeTimeoutMs(timeoutMs: number): number {
  return Math.min(20, timeoutMs / 2);
}

/** After a timeout, Weir does not call the native limiter for this long, in milliseconds. */
const PAUSE_MS = 1000;

/**
 * Creates a function that checks a client against the native limiter. The function returns true if
 * there is no native limiter, or if it fails or times out. In these cases, the isolate's own
 * counters decide alone.
 */
export function createNativeGuard(
  nativeLimiter: NativeLimiter | undefined,
  timeoutMs: number,
): (appliedRule: AppliedRule) => Promise<boolean> {
  let pausedUntil = 0;

  return async function isWithinNativeLimit({ rule, identity }) {
    const now = Date.now();
    // If more than PAUSE_MS is left of the pause, the clock was set back, and the pause counts as
    // ended.
    const isPaused = now < pausedUntil && pausedUntil - now <= PAUSE_MS;
    if (!nativeLimiter || isPaused) return true;
    let deadline: Deadline | undefined;
    // `weir explain` loads files that import this one in Node 20, which has no Promise.withResolvers.
    const timeout = new Promise<undefined>((resolve) => {
      deadline = new Deadline(nativeTimeoutMs(timeoutMs), (wasBusy) => {
        if (!wasBusy) pausedUntil = Date.now() + PAUSE_MS;
        resolve(undefined);
      });
    });
    try {
      const reply = await Promise.race([
        nativeLimiter.limit({ key: `${rule.name}:${identity}` }),
        timeout,
      ]);
      return reply?.success ?? true;
    } catch {
      return true;
    } finally {
      deadline?.clear();
    }
  };
}

import type { AppliedRule } from "../request/applied-rule.ts";

/** Cloudflare's native limiter: one for each of its locations, and only roughly right. */
export type NativeLimiter = Pick<RateLimit, "limit">;

/** The longest period that Cloudflare's limiter has, in milliseconds: when to ask again at last. */
export const NATIVE_PERIOD_MS = 60_000;

/**
 * How long it is waited for, in milliseconds: it is meant to be on the same machine. At most half of a
 * decision's deadline, which it shares with the store.
 */
export function nativeTimeoutMs(timeoutMs: number): number {
  return Math.min(20, timeoutMs / 2);
}

/** When it was late it is left alone for this long, in milliseconds. */
const REST_MS = 1000;

/**
 * Asks the native limiter whether a client is within it. Where there is none, or it is late or broken, there
 * is nothing to be below: what else counts stands for itself.
 */
export function createNativeGuard(
  nativeLimiter: NativeLimiter | undefined,
  timeoutMs: number,
): (subject: AppliedRule) => Promise<boolean> {
  let restsUntil = 0;

  return async function isWithin({ rule, identity }) {
    const now = Date.now();
    const isResting = now < restsUntil && restsUntil - now <= REST_MS;
    if (!nativeLimiter || isResting) return true;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, nativeTimeoutMs(timeoutMs));
    try {
      const answer = await Promise.race([
        nativeLimiter.limit({ key: `${rule.name}:${identity}` }),
        late,
      ]);
      if (!answer) restsUntil = Date.now() + REST_MS;
      return answer?.success ?? true;
    } catch {
      return true;
    } finally {
      clearTimeout(timer);
    }
  };
}

import type { Subject } from "../request/subject.ts";

/** Cloudflare's native limiter: one for each of its locations, and only roughly right. */
export type Floor = Pick<RateLimit, "limit">;

/** The longest period that Cloudflare's limiter has, in milliseconds: when to ask again at last. */
export const FLOOR_PERIOD_MS = 60_000;

/**
 * How long it is waited for, in milliseconds: it is meant to be on the same machine. At most half of a
 * decision's deadline, which it shares with the store.
 */
export function floorTimeoutMs(timeoutMs: number): number {
  return Math.min(20, timeoutMs / 2);
}

/** When it was late it is left alone for this long, in milliseconds. */
const REST_MS = 1000;

/**
 * Asks the floor whether a client is within it. Where there is none, or it is late or broken, there
 * is nothing to be below: what else counts stands for itself.
 */
export function floorGuard(
  floor: Floor | undefined,
  timeoutMs: number,
): (subject: Subject) => Promise<boolean> {
  let restsUntil = 0;

  return async function isWithin({ rule, identity }) {
    const now = Date.now();
    const isResting = now < restsUntil && restsUntil - now <= REST_MS;
    if (!floor || isResting) return true;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, floorTimeoutMs(timeoutMs));
    try {
      const answer = await Promise.race([floor.limit({ key: `${rule.name}:${identity}` }), late]);
      if (!answer) restsUntil = Date.now() + REST_MS;
      return answer?.success ?? true;
    } catch {
      return true;
    } finally {
      clearTimeout(timer);
    }
  };
}

import { waitUntil } from "cloudflare:workers";
import type { QuotaEvent } from "../config/custom.ts";
import {
  type Adjustment,
  type Counter,
  type Demand,
  type Tally,
  windowEndingNear,
} from "../engine/counter.ts";
import type { Answer, Store } from "./store.ts";

/** Tells that a client has used a share of its quota. Must not reject. */
export type OnCrossing = (event: QuotaEvent) => Promise<void>;

/**
 * Wraps a store so that `onCrossing` learns of each charge with which a count reaches a share of `Counter.notify`. The
 * store charges one request after the other, so exactly one of them finds the count below the share before it, and not
 * below after it. This wrapper must be below the leases and remembered denials, because it needs the store's counts.
 *
 * @param background keeps the Worker alive until a task has ended
 */
export function withCrossings(
  store: Store,
  onCrossing: OnCrossing,
  background: (task: Promise<unknown>) => void = waitUntil,
): Store {
  function tellLater<Result>(result: Promise<Result>, eventsOf: (result: Result) => QuotaEvent[]) {
    const told = result.then((each) => Promise.all(eventsOf(each).map(onCrossing)));
    // The caller handles the failure.
    background(told.catch(() => {}));
    return result;
  }
  return {
    ...(store.denialOf && { denialOf: store.denialOf }),
    reset: (counters, now) => store.reset(counters, now),

    decide(groups, now, unused) {
      const answers = store.decide(
        groups.map((group) => group.map(withoutNotify)),
        now,
        unused,
      );
      return answers.map((answer, at) => {
        const group = groups[at] ?? [];
        return group.some(isTold)
          ? tellLater(answer, (each) => decidedEvents(group, each))
          : answer;
      });
    },

    adjust(counters, now, unused) {
      const adjusted = store.adjust(counters.map(withoutNotify), now, unused);
      if (!counters.some(isTold)) return adjusted;
      return tellLater(adjusted, (tallies) => adjustedEvents(counters, tallies, now ?? Date.now()));
    },
  };
}

function isTold({ notify, cost }: Adjustment): boolean {
  return notify !== undefined && cost > 0;
}

/** Stores do not need the field, and Durable Objects would get it with each call. */
function withoutNotify<Each extends Counter>(counter: Each): Each {
  if (!counter.notify) return counter;
  const { notify: _, ...rest } = counter;
  return rest as Each;
}

function decidedEvents(group: readonly Demand[], { admitted, tallies, now }: Answer): QuotaEvent[] {
  if (!admitted) return [];
  return group.flatMap((counter, at) => {
    const tally = tallies[at];
    if (!tally || counter.checkOnly) return [];
    return eventsOf(counter, tally, tally.charged ?? counter.cost, now);
  });
}

function adjustedEvents(
  counters: readonly Adjustment[],
  tallies: readonly Tally[],
  now: number,
): QuotaEvent[] {
  return counters.flatMap((counter, at) => {
    const tally = tallies[at];
    return tally && isCharged(counter, tally, now)
      ? eventsOf(counter, tally, counter.cost, now)
      : [];
  });
}

/** Whether an adjustment has changed the count: not if it belongs to a window that is not counted any more. */
function isCharged(counter: Adjustment, { ring, resetMs }: Tally, now: number): boolean {
  const { chargedIn } = counter;
  if (chargedIn === undefined) return true;
  if (!ring) return chargedIn === windowEndingNear(now + resetMs, counter).index;
  return chargedIn <= ring.window && chargedIn > ring.window - ring.counts.length;
}

/** Returns an event for each share that a charge has reached, in ascending order. */
function eventsOf(counter: Counter, tally: Tally, charged: number, now: number): QuotaEvent[] {
  const { notify, identity: client, shadow, marks } = counter;
  if (!notify) return [];
  const { rule, policy, shares, capacity: limit } = notify;
  const { count: used, resetMs } = tally;
  const isReached = (share: number) => {
    const least = quotaOf(share, limit);
    return used - charged < least && least <= used;
  };
  const mode = shadow ? "shadow" : marks ? "mark" : "enforce";
  const resetAt = now + resetMs;
  return shares
    .filter(isReached)
    .map((share) => ({ mode, rule, policy, client, share, used, limit, resetAt }));
}

/**
 * Returns the smallest whole number that reaches a share of a limit. The product of two floating-point numbers may be
 * a little above or below the whole number that it means: 0.07 × 100 is 7.000000000000001.
 */
export function quotaOf(share: number, limit: number): number {
  const product = share * limit;
  const nearest = Math.round(product);
  return Math.abs(product - nearest) <= product * Number.EPSILON ? nearest : Math.ceil(product);
}

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
  async function tell(counters: readonly Told[], result: Promise<Result>): Promise<void> {
    await Promise.all(eventsOf(counters, await result).map(onCrossing));
  }
  function tellLater(counters: readonly Told[], result: () => Promise<Result>): void {
    if (!counters.some(({ notify, cost }) => notify && cost > 0)) return;
    // The caller handles the failure.
    background(tell(counters, result()).catch(() => {}));
  }
  return {
    ...(store.denialOf && { denialOf: store.denialOf }),
    reset: (counters, now) => store.reset(counters, now),

    decide(groups, now, unused) {
      const plain = groups.map((group) => group.map(withoutNotify));
      const answers = store.decide(plain, now, unused);
      for (const [at, group] of groups.entries()) {
        tellLater(group, () => answers[at] as Promise<Answer>);
      }
      return answers;
    },

    adjust(counters, now, unused) {
      const adjusted = store.adjust(counters.map(withoutNotify), now, unused);
      tellLater(counters, async () => ({ tallies: await adjusted, now: now ?? Date.now() }));
      return adjusted;
    },
  };
}

/** A counter of a decision, or of a charge or refund afterwards. */
type Told = Adjustment & Pick<Demand, "checkOnly">;
type Result = Pick<Answer, "tallies" | "now"> & { readonly admitted?: boolean };

/** Stores do not need the field, and Durable Objects would get it with each call. */
function withoutNotify<Each extends Counter>(counter: Each): Each {
  if (!counter.notify) return counter;
  const { notify: _, ...rest } = counter;
  return rest as Each;
}

/** Returns an event for each share that a charge has reached, in ascending order. */
function eventsOf(counters: readonly Told[], { admitted = true, tallies, now }: Result) {
  if (!admitted) return [];
  return counters.flatMap((counter, at): QuotaEvent[] => {
    const { notify, identity: client, shadow, marks } = counter;
    const tally = tallies[at];
    if (!notify || !tally || counter.checkOnly || !isCharged(counter, tally, now)) return [];
    const { rule, policy, shares, capacity: limit } = notify;
    const used = tally.count;
    const before = used - (tally.charged ?? counter.cost);
    const mode = shadow ? "shadow" : marks ? "mark" : "enforce";
    const resetAt = now + tally.resetMs;
    return shares
      .filter((share) => before < quotaOf(share, limit) && quotaOf(share, limit) <= used)
      .map((share) => ({ mode, rule, policy, client, share, used, limit, resetAt }));
  });
}

/** Whether a charge has changed the count: not if it belongs to a window that is not counted any more. */
function isCharged(counter: Adjustment, { ring, resetMs }: Tally, now: number): boolean {
  const { chargedIn } = counter;
  if (chargedIn === undefined) return true;
  if (!ring) return chargedIn === windowEndingNear(now + resetMs, counter).index;
  return chargedIn <= ring.window && chargedIn > ring.window - ring.counts.length;
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

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
 * Wraps a store so that `onCrossing` learns of each charge with which a count first reaches a share of `Counter.notify`
 * in a window. The store charges one request after the other, so exactly one of them finds the count below the share
 * before it, and not below after it. If quota is given back, another one may find the same. So the store also counts
 * the reports of each share, with a limit of one in a window. This wrapper must be below the leases and remembered
 * denials, because it needs the store's counts.
 *
 * @param background keeps the Worker alive until a task has ended
 */
export function withCrossings(
  store: Store,
  onCrossing: OnCrossing,
  background: (task: Promise<unknown>) => void = waitUntil,
): Store {
  async function report(counters: readonly Adjustment[], result: Promise<Result>): Promise<void> {
    const answered = await result;
    const crossings = crossingsOf(counters, answered);
    if (crossings.length === 0) return;
    const markers = crossings.map(({ marker }) => [marker]);
    const answers = store.decide(markers, answered.now);
    const tasks = answers.map(async (answer, at) => {
      // If the store fails here, a share may be reported twice, but none is lost.
      const isFirst = await answer.then(
        ({ admitted }) => admitted,
        () => true,
      );
      if (isFirst) await onCrossing((crossings[at] as Crossing).event);
    });
    await Promise.all(tasks);
  }
  function reportLater(counters: readonly Adjustment[], result: () => Promise<Result>): void {
    if (!counters.some(({ notify, cost }) => notify && cost > 0)) return;
    // The caller handles the failure.
    background(report(counters, result()).catch(() => {}));
  }
  return {
    ...(store.denialOf && { denialOf: store.denialOf }),
    reset: (counters, now) => store.reset(counters, now),

    decide(groups, now, unused) {
      const plain = groups.map((group) => group.map(withoutNotify));
      const answers = store.decide(plain, now, unused);
      for (const [at, group] of groups.entries()) {
        // The decision charges nothing to counters that it only checks.
        const charged = group.map((each) => (each.checkOnly ? { ...each, cost: 0 } : each));
        reportLater(charged, () => answers[at] as Promise<Answer>);
      }
      return answers;
    },

    adjust(counters, now, unused) {
      const adjusted = store.adjust(counters.map(withoutNotify), now, unused);
      reportLater(counters, async () => ({ tallies: await adjusted, now: now ?? Date.now() }));
      return adjusted;
    },
  };
}

type Result = Pick<Answer, "tallies" | "now"> & { readonly admitted?: boolean };

/** Stores do not need the field, and Durable Objects would get it with each call. */
function withoutNotify<Each extends Counter>(counter: Each): Each {
  if (!counter.notify) return counter;
  const { notify: _, ...rest } = counter;
  return rest as Each;
}

/** An event, and the counter that admits it once in a window. */
interface Crossing {
  readonly event: QuotaEvent;
  readonly marker: Demand;
}

/** Returns the shares that a charge has reached, in ascending order. */
function crossingsOf(
  counters: readonly Adjustment[],
  { admitted = true, tallies, now }: Result,
): Crossing[] {
  if (!admitted) return [];
  return counters.flatMap((counter, at): Crossing[] => {
    const { notify, identity: client, shadow, marks } = counter;
    const tally = tallies[at];
    if (!notify || !tally || !isCharged(counter, tally, now)) return [];
    const { rule, policy, tier, shares, capacity: limit } = notify;
    const used = tally.count;
    const before = used - (tally.charged ?? counter.cost);
    const mode = shadow ? "shadow" : marks ? "mark" : "enforce";
    const resetAt = now + tally.resetMs;
    const window = tally.ring ? "" : windowEndingNear(resetAt, counter).index;
    const about = { mode, rule, policy, client, ...(tier !== undefined && { tier }) } as const;
    return shares
      .filter((share) => before < quotaOf(share, limit) && quotaOf(share, limit) <= used)
      .map((share) => ({
        event: { ...about, share, used, limit, resetAt },
        marker: markerOf(counter, `${share}/${limit}/${window}`),
      }));
  });
}

/**
 * @param name names the share of a limit, and the window. By another clock, the marker may be counted in the next
 * window, where it must not hide what that window reaches
 */
function markerOf(counter: Counter, name: string): Demand {
  const { identity, reach, windowMs, offsetMs, calendar, subWindows, shadow, marks } = counter;
  return {
    ...{ key: `${counter.key}/${name}`, identity, windowMs, offsetMs },
    ...{ limit: 1, ceiling: 1, cost: 1 },
    ...(reach !== undefined && { reach }),
    ...(calendar && { calendar }),
    ...(subWindows !== undefined && { subWindows }),
    // If such a call fails, the rules that are enforced do not suffer.
    ...(shadow && { shadow }),
    ...(marks && { marks }),
  };
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

import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import { withDeadline } from "../deadline.ts";
import { decidedLater, isShadow } from "../shadow-groups.ts";
import type { GroupAnswer, Store, Verdict } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { blockOf, isIdle, type Lease, LeaseBook, quotaOf, requestsAhead } from "./lease-book.ts";
import {
  ADMITTED_FROM_LEASES,
  answerOf,
  type CounterPlan,
  coveredByNow,
  type GroupResult,
  leftOf,
  needsStore,
} from "./lease-plan.ts";
import type { StoreCall } from "./snapshot.ts";

/** Leases held at most: about 2 MB. */
const MAX_LEASES = 4096;

/** After a block was lost with its answer, a counter is charged request by request for so long, in ms. */
const LOST_BLOCK_MS = 10_000;

export interface LeaseOptions {
  /** After this long a block that was asked for is taken for lost, in milliseconds. */
  readonly timeoutMs: number;
  /** Keeps a task alive that no response waits for. */
  readonly background: (task: Promise<unknown>) => void;
  readonly maxLeases?: number;
}

/**
 * A store that takes quota of busy counters in blocks and decides by itself until they are used up.
 *
 * All of a block is charged when it is taken, so whatever isolates do, and however many there are, no
 * window admits one request too many. What a lease costs is quota that lies unused where it is not
 * needed: at most the unspent blocks of isolates that went quiet, until they give them back.
 *
 * - A block is as large as the counter's demand here suggests ({@link blockOf}), and at most an eighth
 *   of the room: a client's first request is charged alone, and so are its last.
 * - A fresh one is fetched in the background before the old one is used up, so that a busy client
 *   never waits.
 * - What has not been used for five seconds is given back with the next call.
 * - A group is all or nothing, as ever. Counters with quota here are not asked about; if one of the
 *   others has no room, what was taken is put back.
 *
 * To who asks it is exact: a count is what the store says, less what lies here.
 */
export function withLeases(
  store: Store,
  { timeoutMs, background, maxLeases = MAX_LEASES }: LeaseOptions,
): Store {
  const book = new LeaseBook(maxLeases);
  /** Whether the last call was answered. A block is lost with its answer, so none is asked for if not. */
  let isAnswering = true;

  /** The time to decide by. Where that is this isolate's clock, leases depend on its going on. */
  function timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    book.observe(now);
    return now;
  }

  function partOf(counter: Counter, now: number): CounterPlan {
    const lease = book.find(counter, now);
    if (!lease || counter.cost === 0) return { counter, lease, request: counter };
    // A look at what is about to be given back would see it twice.
    const available = counter.checkOnly && isIdle(lease, now) ? 0 : quotaOf(lease, now);
    const quota = Math.min(available, counter.cost);
    const cost = counter.cost - quota;
    const { snapshot: known } = lease;
    if (!counter.checkOnly) lease.quota -= quota;
    const part: CounterPlan = {
      counter,
      lease,
      ...(known && { basis: { snapshot: known, unspent: lease.quota } }),
      ...(known && !counter.checkOnly && { taken: { quota, window: known.window } }),
    };
    if (cost === 0) return part;
    const block = counter.checkOnly || !isAnswering ? 0 : blockOf(lease, counter, now);
    if (block <= cost) return { ...part, request: { ...counter, cost } };
    lease.refillPendingUntil = now + timeoutMs;
    return { ...part, request: { ...counter, cost, block } };
  }

  function putBack(parts: readonly CounterPlan[]): void {
    for (const { counter, lease, taken } of parts) {
      if (lease && taken) book.putBack(lease, counter, taken);
    }
  }

  /** Takes in what the store has answered for a group. */
  function learn(
    parts: readonly CounterPlan[],
    answer: GroupAnswer,
    call: StoreCall,
    steps: number,
  ): void {
    if (answer.skipCache) return;
    const tallies = answer.tallies.values();
    for (const { lease, request: asked, isAhead = false } of parts) {
      if (!asked) continue;
      const tally = tallies.next().value;
      if (!lease || !tally) continue;
      const left = answer.admitted ? leftOf(asked, tally, isAhead) : 0;
      book.record(lease, asked, tally, call, left, steps);
    }
  }

  async function ask(
    groups: readonly (readonly CounterPlan[])[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    timeLeftMs = timeoutMs,
  ): Promise<Verdict> {
    const asking = groups.map((parts) => parts.flatMap(({ request: asked }) => asked ?? []));
    const blocks = groups.flat().flatMap(({ lease, request: asked }) => {
      return lease && asked?.block !== undefined
        ? [{ lease, until: lease.refillPendingUntil }]
        : [];
    });
    const release = (askingUntil: number) => {
      // Unless it was taken for lost meanwhile, and another is under way.
      for (const { lease, until } of blocks) {
        if (lease.refillPendingUntil === until) lease.refillPendingUntil = askingUntil;
      }
    };
    const { steps } = book;
    const sentAt = Date.now();
    let verdict: Verdict;
    try {
      const inTime = timeLeftMs < timeoutMs ? withDeadline(store, timeLeftMs) : store;
      verdict = await inTime.decide(asking, now, unused);
      isAnswering = true;
      release(0);
    } catch (error) {
      isAnswering = false;
      // A block may have been charged all the same. Its counter gets no other one for a while, so that a
      // store which loses answers does not use up the window.
      release((now ?? Date.now()) + LOST_BLOCK_MS);
      throw error;
    }
    const isGiven = now !== undefined;
    const callUntil = (decidedAt: number): StoreCall => {
      const answeredAt = Date.now();
      if (!isGiven) book.observe(answeredAt);
      return { sentAt, answeredAt, decidedAt, isGiven };
    };
    const call = callUntil(verdict.now);
    for (const [index, answer] of verdict.groups.entries()) {
      const parts = groups[index] as readonly CounterPlan[];
      if (!answer.later) learn(parts, answer, call, steps);
      else {
        answer.later.then(
          (late) => learn(parts, late.groups[0] as GroupAnswer, callUntil(late.now), steps),
          () => {},
        );
      }
    }
    return verdict;
  }

  async function decideOnce(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    timeLeftMs?: number,
  ): Promise<{ storeNow: number; results: GroupResult[] }> {
    const time = timeOf(now);
    const plans = groups.map((group) => group.map((counter) => partOf(counter, time)));
    const open = plans.filter(needsStore);
    let verdict: Verdict | undefined;
    if (open.length > 0 || unused.length > 0) {
      try {
        const call = ask(open, now, [...unused, ...book.takeReturns(time)], timeLeftMs);
        // What is enforced is admitted already: it does not wait for rules in shadow mode.
        const isDecided = plans.some((parts) => !needsStore(parts) && !isTrial(parts));
        if (isDecided && open.length > 0 && open.every(isTrial)) {
          background(call.catch(() => {}));
          verdict = { now: time + clockOffsetOf(plans), groups: decidedLater(call, open.length) };
        } else verdict = await call;
      } catch (error) {
        putBack(plans.flat());
        throw error;
      }
    }
    const answers = verdict?.groups.values();
    const results = plans.map((parts): GroupResult => {
      const answer = needsStore(parts)
        ? (answers?.next().value as GroupAnswer)
        : ADMITTED_FROM_LEASES;
      if (answer.later) {
        const undo = () => putBack(parts);
        answer.later.then(({ groups: [late] }) => late?.admitted || undo(), undo);
      } else if (!answer.admitted) {
        putBack(parts);
      }
      return { parts, answer };
    });
    return { storeNow: verdict?.now ?? time + clockOffsetOf(plans), results };
  }

  /** Fetches blocks for leases that are about to be used up, where requests come as fast as that. */
  function refill(parts: readonly CounterPlan[], now: number | undefined, time: number): void {
    if (!isAnswering) return;
    const groups: CounterPlan[][] = [];
    for (const { lease, counter } of parts) {
      if (!lease || counter.checkOnly || counter.cost === 0) continue;
      const expected = requestsAhead(lease, time);
      if (expected < 1 || lease.quota >= expected * counter.cost) continue;
      const block = blockOf(lease, counter, time);
      if (block <= counter.cost) continue;
      lease.refillPendingUntil = time + timeoutMs;
      groups.push([{ counter, lease, request: { ...counter, block }, isAhead: true }]);
    }
    if (groups.length === 0) return;
    // Nobody waits for it, and a failure is told by the next decision that needs the store.
    background(ask(groups, now, book.takeReturns(time)).catch(() => {}));
  }

  /** Admits a single group by what lies here, as nearly all requests of busy clients are. */
  function admitHere(group: readonly Counter[], now: number | undefined): Verdict | undefined {
    const time = timeOf(now);
    const leases: Lease[] = [];
    for (const counter of group) {
      const lease = counter.checkOnly ? undefined : book.peek(counter);
      if (!lease || counter.cost === 0 || quotaOf(lease, time) < counter.cost) return undefined;
      leases.push(lease);
    }
    const [first] = leases;
    const storeNow = time + (first?.snapshot?.clockOffsetMs ?? 0);
    const parts = group.map((counter, index): CounterPlan => {
      const lease = leases[index] as Lease;
      book.find(counter, time);
      lease.quota -= counter.cost;
      return { counter, lease };
    });
    refill(parts, now, time);
    return { now: storeNow, groups: [answerOf({ parts, answer: ADMITTED_FROM_LEASES }, storeNow)] };
  }

  return {
    async decide(groups, now, unused = []) {
      const [group] = groups;
      if (group && groups.length === 1 && unused.length === 0) {
        const verdict = admitHere(group, now);
        if (verdict) return verdict;
      }
      const startedAt = Date.now();
      const { storeNow, results } = await decideOnce(groups, now, unused);
      const time = now ?? Date.now();
      const retryable = results.filter((result) => coveredByNow(result, time));
      const timeLeftMs = timeoutMs - (Date.now() - startedAt);
      if (retryable.length > 0 && timeLeftMs > 0) {
        const again = retryable.map(({ parts }) => parts.map(({ counter }) => counter));
        // Where this fails, the denial stands that there was before.
        const second = await decideOnce(again, now, [], timeLeftMs).catch(() => undefined);
        for (const [index, result] of retryable.entries()) {
          results[results.indexOf(result)] = second?.results[index] ?? result;
        }
      }
      for (const { parts, answer } of results) if (answer.admitted) refill(parts, now, time);
      return { now: storeNow, groups: results.map((result) => answerOf(result, storeNow)) };
    },

    async adjust(counters, now) {
      // What is adjusted is to be what was used, so unspent quota goes back first.
      const startedAt = Date.now();
      const unused = book.drain(counters, now ?? startedAt);
      let inTime = store;
      if (unused.length > 0) {
        await store.decide([], now, unused);
        // Both calls share one deadline.
        const timeLeftMs = timeoutMs - (Date.now() - startedAt);
        if (timeLeftMs <= 0)
          throw new StoreError("timeout", "no time was left to adjust a counter");
        inTime = withDeadline(store, timeLeftMs);
      }
      const tallies = await inTime.adjust(counters, now);
      // A block that was under way may have come in meanwhile.
      const time = timeOf(now);
      return tallies.map((tally, index) => {
        const lease = book.peek(counters[index] as Counter);
        const unspent = lease ? quotaOf(lease, time) : 0;
        return unspent > 0 ? { ...tally, count: Math.max(0, tally.count - unspent) } : tally;
      });
    },

    async reset(counters, now) {
      book.discard(counters);
      await store.reset(counters, now);
      // Once more, for what was charged before and came meanwhile.
      book.discard(counters);
    },
  };
}

function isTrial(parts: readonly CounterPlan[]): boolean {
  return isShadow(parts.map(({ counter }) => counter));
}

/** How far the store's clock is ahead of this isolate's, by what is known of it. */
function clockOffsetOf(plans: readonly (readonly CounterPlan[])[]): number {
  return plans[0]?.[0]?.lease?.snapshot?.clockOffsetMs ?? 0;
}

import type { Counter, Unused } from "../engine/fixed-window.ts";
import { withDeadline } from "./deadline.ts";
import { blockOf, isIdle, type Lease, LeaseBook, quotaOf, requestsAhead } from "./lease-book.ts";
import {
  ALL_HERE,
  assemble,
  hasCome,
  isOpen,
  leftOf,
  type Part,
  putBack,
  type Result,
} from "./lease-parts.ts";
import type { GroupAnswer, Store, Verdict } from "./store.ts";

/** Leases held at most: about 2 MB. */
const MAX_LEASES = 4096;

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
export function leases(
  store: Store,
  { timeoutMs, background, maxLeases = MAX_LEASES }: LeaseOptions,
): Store {
  const book = new LeaseBook(maxLeases);

  function partOf(counter: Counter, now: number): Part {
    const lease = book.find(counter, now);
    if (!lease || counter.cost === 0) return { counter, lease, asked: counter };
    // A look at what is about to be given back would see it twice.
    const available = counter.checkOnly && isIdle(lease, now) ? 0 : quotaOf(lease, now);
    const quota = Math.min(available, counter.cost);
    const cost = counter.cost - quota;
    if (counter.checkOnly) {
      return { counter, lease, ...(cost > 0 && { asked: { ...counter, cost } }) };
    }
    const taken = { quota, window: lease.known?.window ?? 0 };
    lease.quota -= quota;
    if (cost === 0) return { counter, lease, taken };
    const block = blockOf(lease, counter, now);
    if (block <= cost) return { counter, lease, taken, asked: { ...counter, cost } };
    lease.askingUntil = now + timeoutMs;
    return { counter, lease, taken, asked: { ...counter, cost, block } };
  }

  async function ask(
    groups: readonly (readonly Part[])[],
    now: number | undefined,
    unused: readonly Unused[],
    timeLeftMs = timeoutMs,
  ): Promise<Verdict> {
    const asking = groups.map((parts) => parts.flatMap(({ asked }) => asked ?? []));
    const blocks = groups.flat().flatMap(({ lease, asked }) => {
      return lease && asked?.block !== undefined ? [{ lease, until: lease.askingUntil }] : [];
    });
    const sentAt = Date.now();
    let verdict: Verdict;
    try {
      const inTime = timeLeftMs < timeoutMs ? withDeadline(store, timeLeftMs) : store;
      verdict = await inTime.decide(asking, now, unused);
    } finally {
      // Unless it was taken for lost meanwhile, and another is under way.
      for (const { lease, until } of blocks) {
        if (lease.askingUntil === until) lease.askingUntil = 0;
      }
    }
    const isGiven = now !== undefined;
    const call = { sentAt, answeredAt: Date.now(), decidedAt: verdict.now, isGiven };
    for (const [index, { admitted, tallies, isRemembered }] of verdict.groups.entries()) {
      if (isRemembered) continue;
      const answers = tallies.values();
      for (const { lease, asked, isAhead = false } of groups[index] as readonly Part[]) {
        if (!asked) continue;
        const tally = answers.next().value;
        if (!lease || !tally) continue;
        const left = admitted ? leftOf(asked, tally, isAhead) : 0;
        book.learn(lease, asked, tally, call, left);
      }
    }
    return verdict;
  }

  async function decideOnce(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
    unused: readonly Unused[],
    timeLeftMs?: number,
  ): Promise<{ storeNow: number; results: Result[] }> {
    const time = now ?? Date.now();
    const plans = groups.map((group) => group.map((counter) => partOf(counter, time)));
    const open = plans.filter(isOpen);
    let verdict: Verdict | undefined;
    if (open.length > 0 || unused.length > 0) {
      try {
        verdict = await ask(open, now, [...unused, ...book.takeUnused(time)], timeLeftMs);
      } catch (error) {
        for (const part of plans.flat()) putBack(part);
        throw error;
      }
    }
    const answers = verdict?.groups.values();
    const results = plans.map((parts): Result => {
      const answer = isOpen(parts) ? (answers?.next().value as GroupAnswer) : ALL_HERE;
      if (!answer.admitted) for (const part of parts) putBack(part);
      return { parts, answer };
    });
    const ahead = plans[0]?.[0]?.lease?.known?.ahead ?? 0;
    return { storeNow: verdict?.now ?? time + ahead, results };
  }

  /** Fetches blocks for leases that are about to be used up, where requests come as fast as that. */
  function refill(parts: readonly Part[], now: number | undefined, time: number): void {
    const groups: Part[][] = [];
    for (const { lease, counter } of parts) {
      if (!lease || counter.checkOnly || counter.cost === 0) continue;
      const expected = requestsAhead(lease, time);
      if (expected < 1 || lease.quota >= expected * counter.cost) continue;
      const block = blockOf(lease, counter, time);
      if (block <= counter.cost) continue;
      lease.askingUntil = time + timeoutMs;
      groups.push([{ counter, lease, asked: { ...counter, block }, isAhead: true }]);
    }
    if (groups.length === 0) return;
    // Nobody waits for it, and a failure is told by the next decision that needs the store.
    background(ask(groups, now, book.takeUnused(time)).catch(() => {}));
  }

  /** Admits a single group by what lies here, as nearly all requests of busy clients are. */
  function admitHere(group: readonly Counter[], now: number | undefined): Verdict | undefined {
    const time = now ?? Date.now();
    const leases: Lease[] = [];
    for (const counter of group) {
      const lease = counter.checkOnly ? undefined : book.peek(counter);
      if (!lease || counter.cost === 0 || quotaOf(lease, time) < counter.cost) return undefined;
      leases.push(lease);
    }
    const [first] = leases;
    const storeNow = time + (first?.known?.ahead ?? 0);
    const parts = group.map((counter, index): Part => {
      const lease = leases[index] as Lease;
      book.find(counter, time);
      lease.quota -= counter.cost;
      return { counter, lease };
    });
    refill(parts, now, time);
    return { now: storeNow, groups: [assemble({ parts, answer: ALL_HERE }, storeNow)] };
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
      const luckier = results.filter((result) => hasCome(result, time));
      const timeLeftMs = timeoutMs - (Date.now() - startedAt);
      if (luckier.length > 0 && timeLeftMs > 0) {
        const again = luckier.map(({ parts }) => parts.map(({ counter }) => counter));
        // Where this fails, the denial stands that there was before.
        const second = await decideOnce(again, now, [], timeLeftMs).catch(() => undefined);
        for (const [index, result] of luckier.entries()) {
          results[results.indexOf(result)] = second?.results[index] ?? result;
        }
      }
      for (const { parts, answer } of results) if (answer.admitted) refill(parts, now, time);
      return { now: storeNow, groups: results.map((result) => assemble(result, storeNow)) };
    },

    async adjust(counters, now) {
      // What is adjusted is to be what was used, so quota that lies here goes back first.
      const unused = book.empty(counters, now ?? Date.now());
      if (unused.length > 0) await store.decide([], now, unused);
      return store.adjust(counters, now);
    },

    async reset(counters, now) {
      book.forget(counters);
      await store.reset(counters, now);
      // Once more, for what was charged before and came meanwhile.
      book.forget(counters);
    },
  };
}

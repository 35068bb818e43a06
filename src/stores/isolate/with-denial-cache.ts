import type { Counter, Tally } from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";
import { decidedLater, failedGroup, isShadow } from "../shadow-groups.ts";
import type { GroupAnswer, Store, Verdict } from "../store.ts";
import { type Frequency, FrequencyMap } from "./frequency-map.ts";
import {
  type CounterSnapshot,
  isValidAt,
  type StoreCall,
  snapshotOf,
  tallyOf,
} from "./snapshot.ts";

/** Counters remembered at most: less than 2 MB. */
const MAX_COUNTERS = 4096;

/**
 * How long a denial is remembered at most, in milliseconds: a refund, or a reset by an operator, is
 * seen by every isolate after this long.
 */
export const MAX_AGE_MS = 10_000;

type Group = readonly Counter[];

/** What is known of a group's counters. Not all need be, for one without room denies them all. */
type Denial = readonly (CounterSnapshot | undefined)[];

/**
 * A denial is told from memory though not all of its counters are known, and so not all are told of,
 * where a counter without room is asked for this often; see {@link Frequency}. Else whoever finds a second
 * key to vary, such as the path beside the address, would cost a call with each denied request.
 */
const PARTIAL_DENIAL_USES = 500;

interface CachedCounter extends Frequency {
  snapshot: CounterSnapshot;
  /** By this isolate's clock. */
  receivedAt: number;
}

/**
 * A store that answers from memory where there is no room for sure.
 *
 * It remembers of denied counters how much of them is used and until when, rather than that they were
 * denied: a smaller cost that still fits is asked about, as is everything when the limit has been
 * raised. A count only falls by refunds, by what others give back, and by a reset, so that a denial
 * from memory is at most {@link MAX_AGE_MS} out of date.
 *
 * Remembers plain values, by whole keys, at most `maxCounters` of them.
 */
export function withDenialCache(store: Store, maxCounters = MAX_COUNTERS): Store {
  const cached = new FrequencyMap<CachedCounter>(maxCounters);
  let latest = Number.NEGATIVE_INFINITY;

  /** The time to decide by. When this isolate's clock goes back, nobody knows how long denials hold. */
  function timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    if (now < latest) cached.clear();
    latest = now;
    return now;
  }

  function recall(key: string, now: number): CounterSnapshot | undefined {
    const entry = cached.peek(key);
    if (!entry) return undefined;
    const { snapshot: known, receivedAt: learntAt } = entry;
    if (isValidAt(known, now) && learntAt <= now && now < learntAt + MAX_AGE_MS) return known;
    cached.delete(key);
    return undefined;
  }

  /**
   * What is known of a counter. Of two shards to choose from both must be known; the answer is then
   * about the one with more room, as a store's is.
   */
  function recallChoice(
    { key, ceiling, alternative }: Counter,
    now: number,
  ): CounterSnapshot | undefined {
    const known = recall(key, now);
    const other = known && alternative && recall(alternative.key, now);
    if (!alternative || !other) return alternative ? undefined : known;
    const otherCount = other.count + ceiling - alternative.ceiling;
    return otherCount < known.count ? { ...other, count: otherCount } : known;
  }

  /**
   * What is known of a group's counters, if it cannot but be denied.
   *
   * @param isAway whether the store has failed: then it can neither complete what is known, nor begin
   * a ban, and the denial stands all the same
   */
  function denialOf(group: readonly Counter[], now: number, isAway = false): Denial | undefined {
    if (cached.size === 0) return undefined;
    let [isDenied, recentUses] = [false, 0];
    const denial: (CounterSnapshot | undefined)[] = [];
    for (const counter of group) {
      // Whoever asks at no cost wants to know how things are.
      if (counter.cost === 0) return undefined;
      const known = recallChoice(counter, now);
      const stands = known
        ? standing(counter, tallyOf(known, now + known.clockOffsetMs))
        : undefined;
      // The first to find no room brings a ban about, which only the store can do.
      const mayBan = counter.banMs !== undefined && !counter.neverBans;
      if (mayBan && !isAway && (!stands || stands === "full")) return undefined;
      denial.push(known);
      if (stands !== "full" && stands !== "banned") continue;
      isDenied = true;
      for (const key of keysOf(counter)) {
        recentUses = Math.max(recentUses, cached.use(key, now)?.recentUses ?? 0);
      }
    }
    const isEnough = isAway || recentUses >= PARTIAL_DENIAL_USES || denial.every(Boolean);
    return isDenied && isEnough ? denial : undefined;
  }

  /**
   * Remembers a denied group's counters: those that have no room, and for the sake of the fields the
   * others. What is remembered already is brought up to date.
   */
  function record(group: readonly Counter[], answer: GroupAnswer, call: StoreCall): void {
    if (answer.skipCache) return;
    if (!call.isGiven && call.answeredAt < call.sentAt) return;
    const full = new Set<string>();
    for (const [index, counter] of group.entries()) {
      const tally = answer.tallies[index];
      const isFull = !answer.admitted && tally && standing(counter, tally) !== "roomy";
      if (isFull) full.add(counter.identity);
    }
    const learntAt = call.isGiven ? call.decidedAt : call.answeredAt;
    for (const [index, counter] of group.entries()) {
      const { identity, cost, alternative } = counter;
      const tally = answer.tallies[index];
      if (cost === 0 || !tally) continue;
      if (alternative) {
        // The answer is about the shard with more room. So it says nothing of the other one, unless
        // it has none: then each has used as much at least, by its own ceiling.
        if (answer.admitted || standing(counter, tally) !== "full") continue;
        const count = Math.max(0, tally.count - counter.ceiling + alternative.ceiling);
        remember(counter, snapshotOf(counter, tally, call), learntAt, true);
        remember(alternative, snapshotOf(alternative, { ...tally, count }, call), learntAt, true);
        continue;
      }
      const isWorthIt = full.has(identity) || (full.size > 0 && !answer.isProvisional);
      remember(counter, snapshotOf(counter, tally, call), learntAt, isWorthIt);
    }
  }

  /** @param isWorthIt whether a counter that is not remembered yet gets an entry */
  function remember(
    { key }: Counter,
    known: CounterSnapshot,
    learntAt: number,
    isWorthIt: boolean,
  ): void {
    const entry = cached.peek(key);
    if (entry) Object.assign(entry, { snapshot: known, receivedAt: learntAt });
    else if (isWorthIt)
      cached.add(key, {
        snapshot: known,
        receivedAt: learntAt,
        recentUses: 1,
        lastUsedAt: learntAt,
      });
  }

  function forget(counters: readonly Counter[]): void {
    for (const key of counters.flatMap(keysOf)) cached.delete(key);
  }

  /** Takes in what the store has answered, and will answer later. */
  function recordAll(groups: readonly Group[], answers: readonly GroupAnswer[], call: StoreCall) {
    for (const [index, group] of groups.entries()) {
      const answer = answers[index] as GroupAnswer;
      if (!answer.later) record(group, answer, call);
      else {
        answer.later.then(
          ({ now, groups: [late] }) => {
            const answeredAt = timeOf(undefined);
            record(group, late as GroupAnswer, { ...call, answeredAt, decidedAt: now });
          },
          () => {},
        );
      }
    }
  }

  /**
   * Answers for a store that has failed, as far as denials are known.
   *
   * @throws the error, when an enforced group is not known to be denied
   */
  function answersFor(groups: readonly Group[], time: number, error: unknown): Verdict {
    const denials = groups.map((group) => denialOf(group, time, true));
    const isOpen = groups.some((group, index) => !denials[index] && !isShadow(group));
    if (isOpen || !denials.some(Boolean)) throw error;
    const storeNow = time + clockOffsetOf(denials);
    return {
      now: storeNow,
      groups: denials.map((denial) =>
        denial ? cachedAnswer(denial, storeNow) : failedGroup(error),
      ),
    };
  }

  return {
    async decide(groups, now, unused = []) {
      const time = timeOf(now);
      const denials = groups.map((group) => denialOf(group, time));
      const rest = groups.filter((_, index) => !denials[index]);
      const isDecided = groups.some((group, index) => denials[index] && !isShadow(group));
      const storeNow = time + clockOffsetOf(denials);
      let verdict: Verdict;
      if (rest.length === 0 && unused.length === 0) {
        verdict = { now: storeNow, groups: [] };
      } else if (isDecided && rest.length > 0 && rest.every(isShadow)) {
        // What is enforced is denied already: it does not wait for rules in shadow mode.
        const call = this.decide(rest, now, unused);
        verdict = { now: storeNow, groups: decidedLater(call, rest.length) };
      } else {
        // What is given back may make room.
        forget(unused.map(({ counter }) => counter));
        const sentAt = Date.now();
        try {
          verdict = await store.decide(rest, now, unused);
          const isGiven = now !== undefined;
          const call = { sentAt, answeredAt: timeOf(undefined), decidedAt: verdict.now, isGiven };
          recordAll(rest, verdict.groups, call);
        } catch (error) {
          verdict = answersFor(rest, timeOf(now), error);
        }
      }
      const answers = verdict.groups.values();
      return {
        now: verdict.now,
        groups: denials.map((denial) =>
          denial ? cachedAnswer(denial, verdict.now) : (answers.next().value as GroupAnswer),
        ),
      };
    },

    async adjust(counters, now) {
      const tallies = await store.adjust(counters, now);
      forget(counters);
      return tallies;
    },

    async reset(counters, now) {
      forget(counters);
      await store.reset(counters, now);
      // Once more, for what was learnt meanwhile.
      forget(counters);
    },
  };
}

function keysOf({ key, alternative }: Counter): string[] {
  return alternative ? [key, alternative.key] : [key];
}

/** How a counter stands, to who asks for its cost. */
function standing(counter: Counter, { count, banMs }: Tally): "roomy" | "full" | "banned" {
  if (banMs > 0) return "banned";
  return hasQuota(counter, count) ? "roomy" : "full";
}

/** How far the store's clock is ahead of this isolate's, by what is known of it. */
function clockOffsetOf(denials: readonly (Denial | undefined)[]): number {
  return denials.flat().find((known) => known)?.clockOffsetMs ?? 0;
}

function cachedAnswer(denial: Denial = [], storeNow: number): GroupAnswer {
  return {
    admitted: false,
    skipCache: true,
    tallies: denial.map((known) => known && tallyOf(known, storeNow)),
  };
}

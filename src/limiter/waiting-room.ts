import type { Counter, Tally, UnusedQuota } from "../engine/counter.ts";
import { quotaAfterMs } from "../engine/fixed-window.ts";
import { SLOT_RETRY_MS } from "../engine/slots.ts";
import { countedIn, countsSubWindows, quotaUntil, ringAt } from "../engine/sub-windows.ts";
import { sharedPromise } from "../request/shared-promise.ts";
import type { Answer } from "../stores/store.ts";
import { type RuleCounter, waits } from "./counters.ts";
import { exceeds } from "./decision.ts";

/** The maximum number of requests of an isolate that wait, and of those that wait for the same counter. */
export const MAX_WAITING = 1000;
export const MAX_WAITING_FOR_ONE = 250;

/** How often a request is decided at most. The last time is only for a slot that comes back in this isolate. */
const MAX_DECISIONS = 6;
const MAX_TIMED_DECISIONS = MAX_DECISIONS - 1;

/** An isolate first asks for this part of a limit, so that an isolate near the store does not take all of it. */
const FIRST_SHARE = 1 / 8;

/** The shortest mean time between two looks for slots that other isolates have given back, in milliseconds. */
const MIN_LOOK_MS = 250;

/** How long a request sleeps at a time, so that it soon notices if one before it was killed, in milliseconds. */
const MAX_SLEEP_MS = 5000;

/** The enforced counters of a request, and the decision on them. */
export interface Decided {
  readonly counters: readonly RuleCounter[];
  readonly answer: Answer;
}

/** A decision, and when it was known, in milliseconds since the Unix epoch. */
type Known = Decided & { readonly at: number };

/** A request that may wait. */
export interface WaitingRequest {
  /** When the decision began, in milliseconds since the Unix epoch. */
  readonly arrivedAt: number;
  /** Aborted when the client hangs up. */
  readonly signal: AbortSignal;
  /** Decides the request again, with the overrides of this moment and new ids of slots. */
  readonly decide: () => Promise<Decided>;
  /** How long the request has waited, in milliseconds; undefined if it has not slept. */
  waitedMs?: number;
}

/** The requests of the isolate for one counter, and what they know of it. */
interface Line {
  readonly key: string;
  /** In the order of arrival. */
  readonly places: Set<Place>;
  /** The number of requests that sleep. `called` of them wake up at once, because a slot has come back. */
  asleep: number;
  called: number;
  /** When the next request may ask: at the start of a window, or at a random time for slots. */
  nextAt: number;
  /** How much quota the isolate asks for at a time. It doubles while all of it is admitted. */
  chunk: number;
  /** What the isolate was admitted in this window. */
  admitted: number;
  /** What the isolate was admitted in the last window; infinite if that window began before the line. */
  share: number;
  /** When this window began, for `admitted`. */
  sharedAt: number;
  /** The number of open slots, as far as it is known. */
  openSlots: number;
  /** The last decision on a request of the line. */
  last: Known | undefined;
}

/** A request in the room. It is being decided, or it sleeps. */
export interface Place {
  readonly request: WaitingRequest;
  readonly counters: readonly RuleCounter[];
  /** The counter for which the request waits, and the line for this counter. */
  awaited: RuleCounter;
  line: Line;
  /** The longest wait, and the time for which the request has slept, in milliseconds. */
  waitMs: number;
  sleptMs: number;
  /** When the quota for its whole cost may be there. */
  readyAt: number;
  decisions: number;
  last: Known | undefined;
  /** Whether a slot has come back for this request. */
  isCalled: boolean;
  /** Defined while the request sleeps. */
  wake: (() => void) | undefined;
  /** A request that does nothing until this time was killed. */
  goneAt: number;
}

/**
 * The requests of an isolate that wait for quota or slots. Nothing is charged or held for a request that sleeps: when
 * a window begins or a slot has come back, it is decided again like any other request. For each counter, requests ask
 * in the order of arrival. A newcomer does not ask while others wait.
 */
export class WaitingRoom {
  readonly #lines = new Map<string, Line>();
  readonly #timeoutMs: number;
  readonly #time: () => number;
  /** The number of requests that sleep. */
  #asleep = 0;

  /** @param timeoutMs the deadline of a decision in milliseconds */
  constructor(timeoutMs: number, time: () => number) {
    this.#timeoutMs = timeoutMs;
    this.#time = time;
  }

  /** Gives a request its place in the order of arrival. @returns undefined if it can wait for none of its counters */
  enter(counters: readonly RuleCounter[], request: WaitingRequest): Place | undefined {
    const own = ownCounters(counters);
    const isAwaited = ({ counter }: RuleCounter) => this.#lines.get(counter.key)?.asleep;
    const awaited = own.find(isAwaited) ?? own[0];
    if (!awaited) return undefined;
    if (this.#lines.size >= MAX_WAITING) this.#dropKilled();
    const place: Place = {
      request,
      counters,
      awaited,
      line: this.#lineOf(awaited),
      waitMs: awaited.rule.waitMs,
      sleptMs: 0,
      readyAt: 0,
      decisions: 0,
      last: undefined,
      isCalled: false,
      wake: undefined,
      goneAt: this.#time() + 3 * this.#timeoutMs,
    };
    place.line.places.add(place);
    return place;
  }

  /** Whether a request must not ask, because others wait for the same counter. */
  isBehindOthers({ line }: Place): boolean {
    return line.asleep > 0;
  }

  /** Denies a request that must not ask and would wait in vain. Its place then ends. */
  refuse(place: Place): Decided | undefined {
    if (!this.isBehindOthers(place) || this.#hasRoom(place)) return undefined;
    this.#leave(place);
    return this.#denialOf(place);
  }

  /**
   * Lets a request wait until it is admitted, `wait` is over, or its client hangs up. It does not wait if the isolate
   * knows that this would be in vain.
   *
   * @param first the first decision; undefined if others wait for the same counter
   * @throws the error of a decision
   */
  async takeTurn(place: Place, first: Promise<Decided> | undefined): Promise<Decided> {
    const { request } = place;
    try {
      let answered = first;
      while (true) {
        if (answered) {
          place.decisions += 1;
          const decided = await answered;
          if (!this.#mayWait(place, decided)) return decided;
        }
        const isTurn = this.#hasRoom(place) && (await this.#sleepUntilTurn(place));
        if (!isTurn) return this.#denialOf(place);
        place.isCalled = false;
        place.goneAt = this.#time() + 3 * this.#timeoutMs;
        answered = request.decide();
      }
    } finally {
      this.#leave(place);
      if (request.waitedMs !== undefined) {
        request.waitedMs = Math.max(0, this.#time() - request.arrivedAt);
      }
    }
  }

  /** Lets requests ask for slots that the store has got back. */
  slotsReturned(slots: readonly UnusedQuota[]): void {
    for (const { counter } of slots) {
      const line = this.#lines.get(counter.key);
      if (!line) continue;
      line.openSlots = Math.max(0, line.openSlots - 1);
      this.#call(line, MAX_DECISIONS);
    }
  }

  /**
   * Lets the first request ask that sleeps and could take one more slot. The requests of a tier may take more slots than
   * others. If all requests are being decided, the first one asks again if it is denied.
   *
   * @param most only requests with fewer decisions may ask
   */
  #call({ places, openSlots }: Line, most: number): void {
    let next: Place | undefined;
    for (const each of places) {
      if (each.isCalled || each.decisions >= most || each.awaited.counter.ceiling <= openSlots) {
        continue;
      }
      if (each.wake && this.#awaitWindow(each)) continue;
      next ??= each;
      if (!each.wake) continue;
      next = each;
      break;
    }
    if (!next) return;
    next.isCalled = true;
    if (!next.wake) return;
    next.line.called += 1;
    next.wake();
  }

  /** Lets a request that sleeps wait for a window if it needs one that has no quota left. @returns false otherwise */
  #awaitWindow(place: Place): boolean {
    const now = this.#time();
    const awaited = ownCounters(place.counters).find((each) => {
      const { nextAt = 0 } = this.#lines.get(each.counter.key) ?? {};
      return !isSlot(each) && untilMs(nextAt, place, now) > 0;
    });
    if (!awaited) return false;
    awaitInstead(place, awaited);
    place.wake?.();
    return true;
  }

  /** Lets a request wait for a slot if others do, although it has its turn for quota. @returns false otherwise */
  #awaitSlot(place: Place): boolean {
    const awaited = ownCounters(place.counters).find(
      (each) => isSlot(each) && (this.#lines.get(each.counter.key)?.asleep ?? 0) > 0,
    );
    if (!awaited || isSlot(place.awaited)) return false;
    awaitInstead(place, awaited);
    return true;
  }

  /** Learns from a decision. @returns whether the request was denied and may wait */
  #mayWait(place: Place, decided: Decided): boolean {
    const at = this.#time();
    const lacking = lackingOf(decided) ?? [];
    const [longest] = lacking.toSorted((one, other) => other.chanceMs - one.chanceMs);
    if (longest) {
      place.waitMs = Math.min(...lacking.map(({ awaited }) => awaited.rule.waitMs));
      place.readyAt = at + longest.chanceMs;
      this.#moveTo(longest.awaited, place);
    }
    place.last = { ...decided, at };
    place.line.last = place.last;
    for (const [index, each] of decided.counters.entries()) {
      const line = this.#lines.get(each.counter.key);
      const tally = decided.answer.tallies[index];
      if (line && tally) this.#learn(line, each, tally, decided.answer.admitted, at);
    }
    const leftMs = leftMsOf(place);
    return longest !== undefined && leftMs > 0 && longest.chanceMs <= leftMs;
  }

  #moveTo(awaited: RuleCounter, place: Place): void {
    const line = this.#lineOf(awaited);
    place.awaited = awaited;
    if (line.places.has(place)) return;
    this.#leave(place);
    place.line = line;
    this.#lines.set(line.key, line);
    // A request keeps its place in the order of arrival.
    const later = [...line.places].filter(
      ({ request }) => request.arrivedAt > place.request.arrivedAt,
    );
    for (const each of later) line.places.delete(each);
    for (const each of [place, ...later]) line.places.add(each);
  }

  #learn(line: Line, each: RuleCounter, tally: Tally, isAdmitted: boolean, at: number): void {
    const { counter } = each;
    const left = counter.ceiling - tally.count;
    if (isSlot(each)) {
      line.openSlots = tally.count;
      line.nextAt = at + lookMs(line);
      // After its last look, a request leaves the next one to another.
      nextToLook(line)?.wake?.();
      // The store may have more slots than this isolate knew, and than the requests need that are being decided. The
      // last two decisions of a request are for the end of its wait, and for a slot that comes back here.
      const asking = line.places.size - line.asleep + line.called - 1;
      if (left > asking || each.rule.tiers) this.#call(line, MAX_TIMED_DECISIONS - 1);
      return;
    }
    if (isAdmitted) {
      line.admitted += counter.cost;
      line.chunk += counter.cost;
    }
    // A block says nothing about the quota.
    if (tally.banMs > 0 || (isAdmitted ? left > 0 : !exceeds(counter, tally))) return;
    const nextAt = at + Math.min(tally.resetMs, tally.retryMs ?? tally.resetMs);
    const isNewWindow = nextAt - line.nextAt >= counter.windowMs / 2;
    const isFirst = line.nextAt === 0;
    // Of several answers about a window, the nearest end is the most exact: others have arrived later.
    line.nextAt = line.nextAt > at ? Math.min(line.nextAt, nextAt) : nextAt;
    if (!isNewWindow) return;
    line.chunk = (counter.limit * FIRST_SHARE * counter.windowMs) / periodOf(counter);
    for (const place of line.places) if (leftMsOf(place) <= 0) place.wake?.();
    if (nextAt - line.sharedAt < periodOf(counter) - counter.windowMs / 2) return;
    if (!isFirst) line.share = Math.max(1, line.admitted);
    line.admitted = 0;
    line.sharedAt = nextAt;
  }

  /** Whether a request that begins to wait can pass, as far as the isolate knows. */
  #hasRoom(place: Place): boolean {
    const { line, awaited, request } = place;
    const { limit, windowMs, cost } = awaited.counter;
    if (this.#asleep >= MAX_WAITING) this.#dropKilled();
    const isFull = line.asleep >= MAX_WAITING_FOR_ONE || this.#asleep >= MAX_WAITING;
    if (isFull && request.waitedMs === undefined) return false;
    if (isSlot(awaited)) return true;
    const now = this.#time();
    const opensInMs = untilMs(line.nextAt, place, now);
    const windows = Math.floor((leftMsOf(place) - opensInMs) / windowMs) + 1;
    const used = opensInMs > 0 ? 0 : line.admitted;
    const share = Math.min(limit, line.share);
    const sliding = slidingQuota(place, awaited, now);
    const quota =
      sliding === undefined ? Math.max(0, windows) * share - used : (sliding * share) / limit;
    const needed = costBefore(place) + cost;
    return needed <= quota && hasOtherQuota(place, needed, now);
  }

  /** @returns whether it is the request's turn to ask; false if its wait is over */
  async #sleepUntilTurn(place: Place): Promise<boolean> {
    while (!place.request.signal.aborted) {
      const now = this.#time();
      const { awaited } = place;
      this.#dropKilled([place.line]);
      // In a busy isolate, a request that wakes late looks like one that was killed.
      this.#moveTo(awaited, place);
      if (isTurn(place, now)) {
        if (!this.#awaitSlot(place)) return true;
        continue;
      }
      const most = isSlot(awaited) ? MAX_DECISIONS : MAX_TIMED_DECISIONS;
      // Requests get the quota of a window in a few steps, and those whose wait ends meanwhile stay for it.
      const isOpen = !isSlot(awaited) && untilMs(place.line.nextAt, place, now) <= 0;
      const leftMs = leftMsOf(place) + (isOpen ? this.#timeoutMs : 0);
      if (leftMs <= 0 || place.decisions >= most) return false;
      await this.#sleep(place, Math.min(leftMs, untilTurnMs(place, now), MAX_SLEEP_MS));
    }
    return false;
  }

  /** Sleeps until the time is over, the client hangs up, or another request wakes this one. */
  async #sleep(place: Place, ms: number): Promise<void> {
    const { request, line } = place;
    const { signal } = request;
    const startedAt = this.#time();
    const { promise: ended, resolve: end } = sharedPromise<void>();
    let isOver = false;
    request.waitedMs ??= 0;
    place.goneAt = startedAt + ms + this.#timeoutMs;
    line.asleep += 1;
    this.#asleep += 1;
    place.wake = end;
    const timer = setTimeout(() => {
      isOver = true;
      end();
    }, ms);
    const onAbort = () => end();
    signal.addEventListener("abort", onAbort);
    await ended;
    this.#endSleep(place);
    // Only the invocation that has started a timer can end it, but another one may have woken this one.
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    // The isolate's clock may step, but a timer runs on.
    place.sleptMs += isOver ? ms : Math.min(ms, Math.max(0, this.#time() - startedAt));
  }

  #endSleep(place: Place): void {
    if (!place.wake) return;
    place.wake = undefined;
    place.line.asleep -= 1;
    if (place.isCalled) place.line.called -= 1;
    this.#asleep -= 1;
  }

  /** Denies a request at the end of its wait, or one that must not ask. */
  #denialOf({ counters, awaited, line, last }: Place): Decided {
    const at = this.#time();
    const known = last ?? line.last;
    const passedMs = known ? Math.max(0, at - known.at) : 0;
    const now = known ? known.answer.now + passedMs : at;
    const tallies = counters.map((each) => {
      const tally = known && tallyIn(known, each);
      if (each.counter.key === awaited.counter.key) return deniedTally(each, passedMs, now, tally);
      if (!tally || isSlot(each)) return tally;
      const resetMs = tally.resetMs - passedMs;
      return resetMs > 0 ? { ...tally, resetMs } : undefined;
    });
    return {
      counters,
      answer: { admitted: false, now, tallies, ...(!last && { fromMemory: true }) },
    };
  }

  /** Ends a request's place. Another request asks for the slot that has come back for this one. */
  #leave(place: Place): void {
    const { line } = place;
    this.#endSleep(place);
    if (!line.places.delete(place)) return;
    if (place.isCalled) this.#call(line, MAX_DECISIONS);
    place.isCalled = false;
    if (line.places.size === 0) this.#lines.delete(line.key);
    this.#wakeNext(line);
  }

  /** Wakes the requests whose turn it is. The first one looks for the slots of other isolates. */
  #wakeNext(line: Line): void {
    const now = this.#time();
    let before = 0;
    // In a burst, all requests are being decided, and none must be visited.
    let asleep = line.asleep;
    for (const each of line.places) {
      if (asleep === 0) break;
      if (each.wake) {
        if (before > 0 && !isTurn(each, now, before)) break;
        each.wake();
        asleep -= 1;
      }
      before += each.awaited.counter.cost;
    }
  }

  #lineOf({ counter: { key, limit } }: RuleCounter): Line {
    const existing = this.#lines.get(key);
    if (existing) return existing;
    const quota = { nextAt: 0, chunk: limit, admitted: 0, share: Number.POSITIVE_INFINITY };
    const line = {
      key,
      places: new Set<Place>(),
      asleep: 0,
      called: 0,
      sharedAt: 0,
      openSlots: 0,
      last: undefined,
      ...quota,
    };
    this.#lines.set(key, line);
    return line;
  }

  #dropKilled(lines: Iterable<Line> = this.#lines.values()): void {
    const now = this.#time();
    for (const line of lines) {
      for (const each of line.places) if (each.goneAt < now) this.#leave(each);
    }
  }
}

/** Returns the counters for which a request may wait. */
function ownCounters(counters: readonly RuleCounter[]): RuleCounter[] {
  return counters.filter(({ rule, counter }) => waits(rule) && counter.cost > 0);
}

function awaitInstead(place: Place, awaited: RuleCounter): void {
  place.awaited = awaited;
  place.waitMs = Math.min(place.waitMs, awaited.rule.waitMs);
}

function leftMsOf({ waitMs, sleptMs }: Place): number {
  return waitMs - sleptMs;
}

/**
 * Returns the time until a moment for which a request waits; not above 0 if it has come. It is never later than `wait`:
 * otherwise the clock has stepped back, and the request asks.
 */
function untilMs(moment: number, { waitMs }: Place, now: number): number {
  const ms = moment - now;
  return ms > waitMs ? 0 : ms;
}

/** @param before the cost of the requests that come before */
function isTurn(place: Place, now: number, before = costBefore(place)): boolean {
  const { line, awaited, decisions, readyAt } = place;
  if (isSlot(awaited)) {
    if (place.isCalled && decisions < MAX_DECISIONS) return true;
    const isTime = untilMs(line.nextAt, place, now) <= 0 || leftMsOf(place) <= 0;
    return isTime && nextToLook(line) === place;
  }
  if (decisions >= MAX_TIMED_DECISIONS) return false;
  if (untilMs(line.nextAt, place, now) > 0 || untilMs(readyAt, place, now) > 0) return false;
  return before === 0 || before + awaited.counter.cost <= line.chunk;
}

/** Returns the time until a request may have to ask, in milliseconds, if no other one wakes it. */
function untilTurnMs(place: Place, now: number): number {
  const { line, awaited, readyAt } = place;
  if (isSlot(awaited)) {
    return nextToLook(line) === place ? line.nextAt - now : Number.POSITIVE_INFINITY;
  }
  const ms = Math.max(untilMs(line.nextAt, place, now), untilMs(readyAt, place, now));
  if (ms > 0) return ms;
  // It is not among the first of this window.
  const periodMs = periodOf(awaited.counter);
  return periodMs - ((now - line.nextAt) % periodMs);
}

/** Returns the cost of the requests that come before a request. */
function costBefore(place: Place): number {
  let cost = 0;
  for (const each of place.line.places) {
    if (each === place) break;
    cost += each.awaited.counter.cost;
  }
  return cost;
}

/** Whether a request's other limits can admit it too, with those before it, as far as the isolate knows. */
function hasOtherQuota(place: Place, needed: number, now: number): boolean {
  const { counters, awaited, line } = place;
  const known = place.last ?? line.last;
  if (!known || counters.length === 1) return true;
  const untilTurn = Math.max(0, untilMs(line.nextAt, place, now));
  return counters.every((each) => {
    const { counter } = each;
    const tally = tallyIn(known, each);
    const isOther = counter.key !== awaited.counter.key && !isSlot(each) && counter.cost > 0;
    if (!tally || !isOther || !waits(each.rule)) return true;
    const sliding = slidingQuota(place, each, now);
    if (sliding !== undefined) return needed <= sliding;
    // Windows that begin before the request may ask are of no use to it.
    const untilResetMs = tally.resetMs - (now - known.at);
    const left = untilResetMs > untilTurn ? Math.max(0, counter.ceiling - tally.count) : 0;
    const untilFirstMs = Math.max(untilResetMs, untilTurn);
    const windows = Math.floor((leftMsOf(place) - untilFirstMs) / counter.windowMs) + 1;
    return needed <= left + Math.max(0, windows) * counter.limit;
  });
}

/** Returns the time in which a counter grants its whole limit again. */
function periodOf({ windowMs, subWindows = 0 }: Counter): number {
  return windowMs * (subWindows + 1);
}

/** Returns the quota of sub-windows from a request's turn until its wait ends; undefined if it is unknown. */
function slidingQuota(place: Place, each: RuleCounter, now: number) {
  const { last: known, nextAt } = place.line;
  const ring = known && tallyIn(known, each)?.ring;
  if (!ring || !countsSubWindows(each.counter)) return undefined;
  const storeNow = known.answer.now + now - known.at;
  const turnAt = storeNow + Math.max(0, untilMs(nextAt, place, now));
  return quotaUntil(each.counter, ringAt(each.counter, ring, turnAt), storeNow + leftMsOf(place));
}

/**
 * Returns the first request that may still look for slots of other isolates. With tiers, it is one that may take the
 * most slots: while such requests take them all, the looks of others would be in vain.
 */
function nextToLook({ places }: Line): Place | undefined {
  let next: Place | undefined;
  for (const each of places) {
    if (each.decisions >= MAX_TIMED_DECISIONS) continue;
    const { rule, counter } = each.awaited;
    if (!rule.tiers) return each;
    if (!next || counter.ceiling > next.awaited.counter.ceiling) next = each;
  }
  return next;
}

/**
 * Returns a random time until the next look for slots of other isolates, in milliseconds. The intervals of a request
 * double, so that its looks last until the end of its wait, divided by the number of requests that can look.
 */
function lookMs(line: Line): number {
  const next = nextToLook(line);
  if (!next) return Number.POSITIVE_INFINITY;
  const looks = MAX_TIMED_DECISIONS - next.decisions;
  const meanMs = leftMsOf(next) / (2 ** looks - 1) / line.places.size;
  const ms = Math.max(MIN_LOOK_MS, meanMs) * (0.5 + Math.random());
  return Math.ceil(Math.min(ms, leftMsOf(next)));
}

/** Returns the state of a counter in a decision on the same client. */
function tallyIn({ counters, answer }: Known, { counter }: RuleCounter): Tally | undefined {
  return answer.tallies[counters.findIndex((each) => each.counter.key === counter.key)];
}

/** Returns the state of a counter for which others wait: it has no quota for a newcomer. */
function deniedTally(each: RuleCounter, passedMs: number, now: number, known?: Tally): Tally {
  const { counter } = each;
  const { ceiling, cost, windowMs } = counter;
  if (isSlot(each) || !known) return { count: ceiling, resetMs: SLOT_RETRY_MS, banMs: 0 };
  const least = ceiling - cost + 1;
  if (known.ring && countsSubWindows(counter)) {
    const state = countedIn(counter, ringAt(counter, known.ring, now), now);
    return { ...state, count: Math.max(state.count, least), banMs: 0 };
  }
  const leftMs = known.resetMs - passedMs;
  const isSameWindow = leftMs > 0;
  const count = Math.max(isSameWindow ? known.count : 0, least);
  return { count, resetMs: isSameWindow ? leftMs : windowMs + (leftMs % windowMs), banMs: 0 };
}

function isSlot({ window }: RuleCounter): boolean {
  return window.concurrent === true;
}

/** Returns the time until a counter may admit a request, in milliseconds. A slot may come back at any moment. */
function chanceMsOf(each: RuleCounter, tally: Tally, now: number): number {
  if (isSlot(each)) return 0;
  const { retryMs = Number.POSITIVE_INFINITY } = tally;
  return Math.min(retryMs, quotaAfterMs(each.counter, tally, each.counter.ceiling, now));
}

/** Returns the counters that deny a request; undefined unless the request may wait for all of them. */
function lackingOf({ counters, answer }: Decided) {
  if (answer.admitted) return undefined;
  const lacking: { readonly awaited: RuleCounter; readonly chanceMs: number }[] = [];
  for (const [at, each] of counters.entries()) {
    const tally = answer.tallies[at];
    if (!tally || !exceeds(each.counter, tally)) continue;
    if (!waits(each.rule) || each.misfit || tally.banMs > 0) return undefined;
    lacking.push({ awaited: each, chanceMs: chanceMsOf(each, tally, answer.now) });
  }
  return lacking;
}

/** Whether a denied request might be admitted within the `wait` of each rule that denies it. */
export function mayPassLater(decided: Decided): boolean {
  const lacking = lackingOf(decided) ?? [];
  return (
    lacking.length > 0 && lacking.every(({ awaited, chanceMs }) => chanceMs <= awaited.rule.waitMs)
  );
}

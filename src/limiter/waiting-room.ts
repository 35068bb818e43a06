import type { Tally, UnusedQuota } from "../engine/counter.ts";
import { quotaAfterMs } from "../engine/fixed-window.ts";
import { newSlotId, SLOT_RETRY_MS } from "../engine/slots.ts";
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

/** How long a returned slot is kept for the request that was woken for it, in milliseconds. */
const HAND_OVER_MS = 50;

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
  /** Decides counters. @param returned slots of other requests that the store frees before */
  readonly decide: (
    counters: readonly RuleCounter[],
    returned: readonly UnusedQuota[],
  ) => Promise<Answer>;
  /** How long the request has waited, in milliseconds; undefined if it has not slept. */
  waitedMs?: number;
}

/** A returned slot, until a request that waits or the one that returns it takes care of it. */
interface Offer {
  readonly slot: UnusedQuota;
  isTaken: boolean;
}

/** The requests of the isolate for one counter, and what they know of it. */
interface Line {
  readonly key: string;
  /** In the order of arrival. */
  readonly places: Set<Place>;
  /** The number of requests that sleep. */
  asleep: number;
  /** When the next request may ask: at the start of a window, or at a random time for slots. */
  nextAt: number;
  /** How much quota the isolate asks for at a time. It doubles while all of it is admitted. */
  chunk: number;
  /** What the isolate was admitted in this window; and in the last one, if it began with requests that waited. */
  admitted: number;
  share: number;
  /** The last denial's state, and when it was known by the clock of the windows and by the isolate's clock. */
  known: { readonly tally: Tally; readonly now: number; readonly at: number } | undefined;
  offers: Offer[];
  /** The last decision on a request of the line. */
  last?: Known;
  /** The last known number of open slots. */
  openSlots: number;
  /** The limit for which the line knows the rest. A live override can change it. */
  limit: number;
}

/** A request in the room. It is being decided, or it sleeps. */
export interface Place {
  readonly request: WaitingRequest;
  counters: readonly RuleCounter[];
  /** The counter for which the request waits, and the line for this counter. */
  awaited: RuleCounter;
  line: Line;
  /** The longest wait, and the time for which the request has slept, in milliseconds. */
  waitMs: number;
  sleptMs: number;
  decisions: number;
  last?: Known;
  /** Whether a slot has come back for this request. */
  isCalled: boolean;
  /** Present while the request sleeps. */
  wake: (() => void) | undefined;
  /** A request that does nothing until this time was killed. */
  goneAt: number;
}

/**
 * The requests of an isolate that wait for quota or slots. Nothing is charged or held for a request that sleeps: when
 * a window begins or a slot comes back, it is decided again like any other request. For each counter, requests ask in
 * the order of arrival. A newcomer does not ask while others wait.
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
    const own = counters.filter(({ rule, counter }) => waits(rule) && counter.cost > 0);
    const isAwaited = ({ counter }: RuleCounter) => this.#lines.get(counter.key)?.asleep;
    const awaited = own.find(isAwaited) ?? own[0];
    if (!awaited) return undefined;
    if (this.#lines.size % MAX_WAITING === 0) this.#dropKilled();
    const place: Place = {
      request,
      counters,
      awaited,
      line: this.#lineOf(awaited),
      waitMs: awaited.rule.waitMs,
      sleptMs: 0,
      decisions: 0,
      isCalled: false,
      wake: undefined,
      goneAt: this.#time() + 3 * this.#timeoutMs,
    };
    place.line.places.add(place);
    if (place.line.limit !== awaited.counter.limit && !awaited.rule.tiers) {
      this.#adopt(place.line, awaited.counter.limit);
    }
    return place;
  }

  /** Forgets what a line knows under another limit, which a live override has changed. */
  #adopt(line: Line, limit: number): void {
    Object.assign(line, { limit, share: limit, chunk: limit * FIRST_SHARE, nextAt: this.#time() });
    this.#wakeNext(line);
  }

  /** Whether a request must not ask, because others wait for the same counter. */
  isBehindOthers({ line }: Place): boolean {
    return line.asleep > 0;
  }

  /**
   * Lets a request wait until it is admitted, `wait` is over, or its client hangs up. It does not wait if the isolate
   * knows that this would be in vain.
   *
   * @param first the first decision; undefined if others wait for the same counter
   * @throws the error of a decision
   */
  async takeTurn(place: Place, first: Promise<Answer> | undefined): Promise<Decided> {
    const { request } = place;
    try {
      let answered = first;
      while (true) {
        if (answered) {
          place.decisions += 1;
          const decided = { counters: place.counters, answer: await answered };
          if (!this.#mayWait(place, decided)) return decided;
        }
        const isTurn = this.#hasRoom(place) && (await this.#sleepUntilTurn(place));
        if (!isTurn) return this.#denialOf(place);
        answered = this.#ask(place);
      }
    } finally {
      this.#leave(place);
      if (request.waitedMs !== undefined) {
        request.waitedMs = Math.max(0, this.#time() - request.arrivedAt);
      }
    }
  }

  /**
   * Wakes requests that wait for returned slots. The decision of such a request also returns the slot.
   *
   * @returns the slots that the caller must return, because no request has taken care of them
   */
  async offer(slots: readonly UnusedQuota[]): Promise<readonly UnusedQuota[]> {
    const offers = slots.map((slot): Offer => ({ slot, isTaken: false }));
    const awaited = offers.filter((each) =>
      this.#callNext(this.#lines.get(each.slot.counter.key), each),
    );
    if (awaited.length > 0) await new Promise((resolve) => setTimeout(resolve, HAND_OVER_MS));
    const left = offers.filter(({ isTaken }) => !isTaken);
    for (const each of left) each.isTaken = true;
    return left.map(({ slot }) => slot);
  }

  /**
   * Lets a request ask that no slot has called yet: the first one that sleeps.
   *
   * @param openSlots the number of open slots, if it is known. Requests of some tiers may take more of them than others
   * @returns whether the request sleeps
   */
  #callNext(line: Line | undefined, offer?: Offer, openSlots?: number): boolean {
    const open = openSlots ?? (offer && line ? line.openSlots - 1 : 0);
    const hasSlot = offer ?? line?.offers.some(({ isTaken }) => !isTaken);
    // The last two decisions are for the end of the wait, and for a slot that comes back here.
    const most = hasSlot ? MAX_DECISIONS : MAX_TIMED_DECISIONS - 1;
    let next: Place | undefined;
    for (const each of line?.places ?? []) {
      if (each.isCalled || each.decisions >= most) continue;
      if (each.awaited.counter.ceiling <= open) continue;
      // If all requests are being decided, the first one asks again if it is denied.
      if (openSlots === undefined) next ??= each;
      if (!each.wake) continue;
      next = each;
      break;
    }
    if (!line || !next) return false;
    next.isCalled = true;
    if (!next.wake) return false;
    if (offer) line.offers.push(offer);
    next.wake();
    return true;
  }

  /** Learns from a decision. @returns whether the request was denied and may wait */
  #mayWait(place: Place, decided: Decided): boolean {
    const at = this.#time();
    const lacking = lackingOf(decided) ?? [];
    const [longest] = lacking.toSorted((one, other) => other.chanceMs - one.chanceMs);
    if (longest) {
      place.waitMs = Math.min(...lacking.map(({ awaited }) => awaited.rule.waitMs));
      this.#moveTo(longest.awaited, place);
    }
    place.last = { ...decided, at };
    place.line.last = place.last;
    for (const [index, each] of decided.counters.entries()) {
      const line = this.#lines.get(each.counter.key);
      const tally = decided.answer.tallies[index];
      if (line && tally) this.#learn(line, each, tally, decided.answer, at);
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

  #learn(line: Line, each: RuleCounter, tally: Tally, { admitted, now }: Answer, at: number): void {
    const { counter } = each;
    const left = counter.ceiling - tally.count;
    if (isSlot(each)) {
      line.openSlots = tally.count;
      line.nextAt = at + lookMs(line);
      // After its last look, a request leaves the next one to another.
      nextToLook(line)?.wake?.();
      // The store may have more slots than this isolate knew.
      if (left > 0 || each.rule.tiers) this.#callNext(line, undefined, tally.count);
      return;
    }
    if (admitted) {
      line.admitted += counter.cost;
      line.chunk += counter.cost;
    }
    if (admitted ? left > 0 : !exceeds(counter, tally)) return;
    const nextAt = at + chanceMsOf(each, tally, now);
    line.known = { tally, now, at };
    // Several answers of a window say the same.
    if (nextAt - line.nextAt < counter.windowMs / 2) return;
    line.share = line.nextAt === 0 ? counter.limit : Math.max(1, line.admitted);
    line.admitted = 0;
    line.chunk = counter.limit * FIRST_SHARE;
    line.nextAt = nextAt;
    for (const place of line.places) if (leftMsOf(place) <= 0) place.wake?.();
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
    const windows = Math.floor((now + leftMsOf(place) - line.nextAt) / windowMs) + 1;
    const used = line.nextAt <= now ? line.admitted : 0;
    const quota = Math.max(0, windows) * Math.min(limit, line.share) - used;
    const needed = costBefore(place) + cost;
    return needed <= quota && this.#hasOtherQuota(place, needed, now);
  }

  /** Whether the request's other limits can admit it too, with those before it, as far as the isolate knows. */
  #hasOtherQuota(place: Place, needed: number, now: number): boolean {
    const { counters, awaited, line } = place;
    const known = place.last ?? line.last;
    if (!known || counters.length === 1) return true;
    return counters.every((each) => {
      const { counter } = each;
      if (each === awaited || isSlot(each) || !waits(each.rule) || counter.cost === 0) return true;
      const at = known.counters.findIndex((other) => other.counter.key === counter.key);
      const tally = known.answer.tallies[at];
      if (!tally) return true;
      // Windows that begin before the request may ask are of no use to it.
      const untilTurnMs = Math.max(0, line.nextAt - now);
      const untilResetMs = tally.resetMs - (now - known.at);
      const left = untilResetMs > untilTurnMs ? Math.max(0, counter.ceiling - tally.count) : 0;
      const untilFirstMs = Math.max(untilResetMs, untilTurnMs);
      const windows = Math.floor((leftMsOf(place) - untilFirstMs) / counter.windowMs) + 1;
      return needed <= left + Math.max(0, windows) * counter.limit;
    });
  }

  /** @returns whether it is the request's turn to ask; false if its wait is over */
  async #sleepUntilTurn(place: Place): Promise<boolean> {
    const { awaited, request } = place;
    while (!request.signal.aborted) {
      const now = this.#time();
      this.#dropKilled([place.line]);
      // In a busy isolate, a request that wakes late looks like one that was killed.
      this.#moveTo(awaited, place);
      if (this.#isTurn(place, now)) return true;
      const leftMs = leftMsOf(place) + (this.#isOpen(place, now) ? this.#timeoutMs : 0);
      const mayStillAsk = place.decisions < (isSlot(awaited) ? MAX_DECISIONS : MAX_TIMED_DECISIONS);
      if (leftMs <= 0 || !mayStillAsk) return false;
      await this.#sleep(place, Math.min(leftMs, untilLookMs(place, now), MAX_SLEEP_MS));
    }
    return false;
  }

  /**
   * Whether a window has begun of which the isolate may get more quota. Requests get it in a few steps, and those whose
   * `wait` ends at this moment stay for it.
   */
  #isOpen({ line, awaited }: Place, now: number): boolean {
    return !isSlot(awaited) && now >= line.nextAt;
  }

  /** @param before the cost of the requests that come before */
  #isTurn(place: Place, now: number, before = costBefore(place)): boolean {
    const { line, awaited, decisions } = place;
    if (isSlot(awaited)) {
      if (place.isCalled && decisions < MAX_DECISIONS) return true;
      return nextToLook(line) === place && (now >= line.nextAt || leftMsOf(place) <= 0);
    }
    if (now < line.nextAt || decisions >= MAX_TIMED_DECISIONS) return false;
    return before === 0 || before + awaited.counter.cost <= line.chunk;
  }

  #ask(place: Place): Promise<Answer> {
    const { line, request } = place;
    place.isCalled = false;
    place.goneAt = this.#time() + 3 * this.#timeoutMs;
    // A failed decision may have taken the slot of the last decision.
    place.counters = place.counters.map(withNewSlot);
    line.offers = line.offers.filter(({ isTaken }) => !isTaken);
    const offer = line.offers.shift();
    if (offer) offer.isTaken = true;
    return request.decide(place.counters, offer ? [offer.slot] : []);
  }

  /** Sleeps until the time is over, the client hangs up, or another request wakes this one. */
  async #sleep(place: Place, ms: number): Promise<void> {
    const { signal } = place.request;
    const startedAt = this.#time();
    let timer!: ReturnType<typeof setTimeout>;
    let end = () => {};
    let isOver = false;
    place.request.waitedMs ??= 0;
    place.goneAt = startedAt + ms + this.#timeoutMs;
    place.line.asleep += 1;
    this.#asleep += 1;
    await new Promise<void>((resolve) => {
      end = resolve;
      place.wake = resolve;
      timer = setTimeout(() => {
        isOver = true;
        resolve();
      }, ms);
      signal.addEventListener("abort", end);
    });
    this.#endSleep(place);
    // Only the invocation that has started a timer can end it, but another one may have woken this one.
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    // The isolate's clock may step, but a timer runs on.
    place.sleptMs += isOver ? ms : Math.min(ms, Math.max(0, this.#time() - startedAt));
  }

  /** Denies a request at the end of its wait, or one that must not ask. */
  #denialOf({ counters, awaited, line, last }: Place): Decided {
    const at = this.#time();
    const known = line.known ?? { now: at, at };
    const passedMs = Math.max(0, at - (last?.at ?? known.at));
    const tallies = counters.map((each, index) => {
      if (each.counter.key === awaited.counter.key) return deniedTally(each, line, at);
      const tally = last?.answer.tallies[index];
      if (!tally || isSlot(each)) return tally;
      const resetMs = tally.resetMs - passedMs;
      return resetMs > 0 ? { ...tally, resetMs } : undefined;
    });
    const now = (last?.answer.now ?? known.now) + passedMs;
    const answer = { admitted: false, now, tallies };
    return { counters, answer: last ? answer : { ...answer, fromMemory: true } };
  }

  #endSleep(place: Place): void {
    if (!place.wake) return;
    place.wake = undefined;
    place.line.asleep -= 1;
    this.#asleep -= 1;
  }

  /** Ends a request's place. If a slot was given back for it, another request gets the slot. */
  #leave(place: Place): void {
    const { line } = place;
    this.#endSleep(place);
    if (!line.places.delete(place)) return;
    if (place.isCalled) this.#callNext(line);
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
        if (before > 0 && !this.#isTurn(each, now, before)) break;
        each.wake();
        asleep -= 1;
      }
      before += each.awaited.counter.cost;
    }
  }

  #lineOf({ counter: { key, limit } }: RuleCounter): Line {
    const known = this.#lines.get(key);
    if (known) return known;
    const quota = { nextAt: 0, chunk: limit, admitted: 0, share: limit, known: undefined };
    const slots = { offers: [], openSlots: 0 };
    const line: Line = { key, limit, places: new Set(), asleep: 0, ...slots, ...quota };
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

function leftMsOf({ waitMs, sleptMs }: Place): number {
  return waitMs - sleptMs;
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

/** Returns the first request that may still look for slots of other isolates. */
function nextToLook({ places }: Line): Place | undefined {
  for (const each of places) if (each.decisions < MAX_TIMED_DECISIONS) return each;
  return undefined;
}

/**
 * Returns a random time until the next look for slots of other isolates, in milliseconds. The intervals of a request
 * double, and its last look is at the end of its wait at the earliest, unless other requests look after it.
 */
function lookMs(line: Line): number {
  const next = nextToLook(line);
  if (!next) return Number.POSITIVE_INFINITY;
  const looks = MAX_TIMED_DECISIONS - next.decisions;
  const meanMs = leftMsOf(next) / (2 ** looks - 1) / line.places.size;
  return Math.ceil(Math.max(MIN_LOOK_MS, meanMs) * (0.5 + Math.random()));
}

/** Returns the time until a request may have to ask, in milliseconds, if no other one wakes it. */
function untilLookMs(place: Place, now: number): number {
  const { line, awaited } = place;
  const untilNextMs = line.nextAt - now;
  if (isSlot(awaited)) {
    return nextToLook(line) === place ? untilNextMs : Number.POSITIVE_INFINITY;
  }
  const { windowMs } = awaited.counter;
  return untilNextMs > 0 ? untilNextMs : windowMs + (untilNextMs % windowMs);
}

/** Returns the state of a counter for which others wait: it has no quota for a newcomer. */
function deniedTally(each: RuleCounter, { known }: Line, at: number): Tally {
  const { ceiling, cost, windowMs } = each.counter;
  if (isSlot(each) || !known) return { count: ceiling, resetMs: SLOT_RETRY_MS, banMs: 0 };
  const leftMs = known.tally.resetMs - (at - known.at);
  const isSameWindow = leftMs > 0;
  const count = Math.max(isSameWindow ? known.tally.count : 0, ceiling - cost + 1);
  return { count, resetMs: isSameWindow ? leftMs : windowMs + (leftMs % windowMs), banMs: 0 };
}

function isSlot({ window }: RuleCounter): boolean {
  return window.concurrent === true;
}

function withNewSlot(each: RuleCounter): RuleCounter {
  const { counter } = each;
  return counter.slot ? { ...each, counter: { ...counter, slot: newSlotId() } } : each;
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

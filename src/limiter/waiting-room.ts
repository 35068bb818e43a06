import {
  type Adjustment,
  byPlace,
  type Demand,
  isAfter,
  type Refund,
  type Tally,
  type UnusedQuota,
  windowAt,
} from "../engine/counter.ts";
import { newSlotId } from "../engine/slots.ts";
import type { Answer, Store } from "../stores/store.ts";
import { afterWait, type RuleCounter, waits } from "./counters.ts";
import { exceeds } from "./decision.ts";
import { type HeldGroup, type HeldSlots, unusedOf } from "./held-slots.ts";
import {
  atCapacity,
  begun,
  type Decided,
  delaysOf,
  refundsOf,
  windowsEndMs,
  withoutCharge,
} from "./reservations.ts";

/** The maximum number of requests of an isolate that wait, and of those that wait for the same counter. */
export const MAX_WAITING = 1000;
export const MAX_WAITING_FOR_ONE = 250;

/**
 * How often a request asks for a slot again, if the store knows no order of arrival. With the first decision, these
 * are five calls. A request that is woken asks besides.
 */
const MAX_RETRIES = 4;

/** How long a request that gives a slot back waits for the request that shall take it, in milliseconds. */
const HAND_OVER_MS = 50;

/**
 * A request keeps a slot that was handed over in this part of its duration. Then the slot has not expired, and does not
 * expire before its next renewal, even if the first renewal fails.
 */
const MAX_SHARE_OF_KEPT = 0.25;

/** How often a request tries to renew a slot before a Durable Object frees it. */
const CLAIM_RENEWALS = 4;

/** The longest pause after a failed call, in milliseconds. It doubles with each further failure. */
const MAX_PAUSE_MS = 500;

/** The longest delay beyond `wait`, in milliseconds, because the clocks of the Worker and the store differ slightly. */
const CLOCK_GRACE_MS = 1000;

type Decide = (
  counters: readonly RuleCounter[],
  unused?: readonly UnusedQuota[],
) => Promise<Answer>;

/** A request that may wait. */
export interface WaitingRequest {
  /** When the decision began, in milliseconds since the Unix epoch. */
  readonly waitsFrom: number;
  /** Aborted when the client hangs up. */
  readonly signal: AbortSignal;
  readonly slots: HeldSlots;
  /** Whether the request has waited. */
  hasWaited: boolean;
  /** How long the request has slept, in milliseconds. */
  sleptMs: number;
  /** The duration of the wait, when it has ended. */
  waitedMs?: number;
  /** Decides counters. @param unused slots to return before */
  readonly decide: Decide;
  /** Changes counters in the background. @returns their new states; none after a failure */
  readonly adjust: (counters: readonly Adjustment[]) => Promise<readonly Tally[]>;
}

/** Slots that one request gives back and another one takes. */
interface Offer {
  readonly held: HeldGroup;
  readonly end: (isAccepted: boolean) => void;
}

/** The quota that a request has reserved in a counter. */
interface Reservation {
  /** When the window of the quota begins, by this isolate's clock, in milliseconds since the Unix epoch. */
  readonly beginsAt: number;
  /** The number of this window. */
  readonly window: number;
  readonly refund: Refund;
}

/** A place in the waiting room. */
class Place {
  readonly request: WaitingRequest;
  /** The key of the counter for which the request waits, and the limit of this counter. */
  key: string;
  limit = 0;
  /** The keys of all counters whose slots the request lacks. */
  lacks: readonly string[] = [];
  endsAt: number;
  /** The request's `sleptMs` at the end of the wait. Unlike `endsAt`, it holds also if the clock steps back. */
  maxSleptMs: number;
  /** Whether no other request of the isolate waited for the counter when this one began to wait. */
  readonly isFirst: boolean;
  offer: Offer | undefined;
  /** Undefined while the request does not sleep. */
  wake: (() => void) | undefined;
  /** Whether a slot was given back while the request was being decided. */
  hasMissed = false;
  /** Undefined if the request waits for a slot, or has reserved quota of several counters. */
  reservation: Reservation | undefined;
  readonly #time: () => number;

  constructor(
    request: WaitingRequest,
    key: string,
    endsAt: number,
    maxSleptMs: number,
    isFirst: boolean,
    time: () => number,
  ) {
    this.request = request;
    this.key = key;
    this.endsAt = endsAt;
    this.maxSleptMs = maxSleptMs;
    this.isFirst = isFirst;
    this.#time = time;
  }

  /**
   * Waits for some time, until the client hangs up, another request wakes this one, or `until` resolves.
   *
   * @returns whether another request has woken this one
   */
  async sleep(ms: number, until?: Promise<unknown>): Promise<boolean> {
    const { request } = this;
    const { signal } = request;
    if (signal.aborted) return false;
    request.hasWaited = true;
    const sleepMs = Math.max(0, Math.min(ms, this.maxSleptMs - request.sleptMs));
    const startedAt = this.#time();
    let end = () => {};
    let timer!: ReturnType<typeof setTimeout>;
    let isWoken = false;
    let isOver = false;
    await new Promise<void>((resolve) => {
      end = resolve;
      this.wake = () => {
        this.wake = undefined;
        isWoken = true;
        resolve();
      };
      timer = setTimeout(() => {
        isOver = true;
        resolve();
      }, sleepMs);
      signal.addEventListener("abort", end);
      until?.then(end);
    });
    // Only the invocation that has started a timer can end it, but another one may have woken this one.
    this.wake = undefined;
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    const passedMs = isOver ? Math.floor(sleepMs) : this.#time() - startedAt;
    request.sleptMs += Math.min(sleepMs, Math.max(0, passedMs));
    return isWoken;
  }

  /** Takes an offer: the request keeps its slots, or the next decision returns them. */
  accept(): Offer | undefined {
    const { offer } = this;
    this.offer = undefined;
    offer?.end(true);
    return offer;
  }
}

/**
 * The requests of an isolate that wait for their turn: for quota that they have reserved, or for a slot. Waiting
 * requests hold no slots.
 *
 * In a store that knows the order of arrival, a slot goes to the first request. With other stores, a request that gives
 * a slot back offers it to the first request of this isolate that waits. This one keeps the slot, or its next call
 * returns the slot and takes it. Until then, each request asks a few times, at random moments, for slots that other
 * isolates have given back.
 */
export class WaitingRoom {
  readonly #store: Store;
  readonly #claimMs: number;
  readonly #time: () => number;
  readonly #places = new Set<Place>();
  /** What requests give back in this turn of the event loop. */
  readonly #refunds: Refund[] = [];
  /** When slots were last given back that nobody took over, by the keys of their counters; in the order of time. */
  readonly #returnedAt = new Map<string, number>();

  /** @param claimMs the time in which a request whose turn it is must take its slot, in milliseconds */
  constructor(store: Store, claimMs: number, time: () => number) {
    this.#store = store;
    this.#claimMs = claimMs;
    this.#time = time;
  }

  get isFull(): boolean {
    return this.#places.size >= MAX_WAITING && this.#placesFor().length >= MAX_WAITING;
  }

  /** Offers returned slots to the first request that waits for one of them. See `SlotOptions`. */
  async handOver(held: HeldGroup): Promise<boolean> {
    if (held.store !== this.#store || this.#store.awaitSlot) return false;
    const keys = held.counters.map(({ key }) => key);
    for (const place of this.#places) {
      // A request that lacks other slots too could not use these.
      const isFit = place.lacks.length > 0 && place.lacks.every((key) => keys.includes(key));
      if (!isFit) continue;
      if (!place.wake) place.hasMissed = true;
      else if (await this.#offer(place, held)) return true;
    }
    for (const key of keys) this.#noteReturn(key);
    return false;
  }

  /** Notes that a slot is given back and nobody takes it over. A request may be on its way into the room. */
  #noteReturn(key: string): void {
    this.#returnedAt.delete(key);
    this.#returnedAt.set(key, this.#time());
    const [oldest] = this.#returnedAt.keys();
    if (oldest !== undefined && this.#returnedAt.size > MAX_WAITING)
      this.#returnedAt.delete(oldest);
  }

  /** @returns whether the request takes the slots over */
  async #offer(place: Place, held: HeldGroup): Promise<boolean> {
    let timer!: ReturnType<typeof setTimeout>;
    const isAccepted = await new Promise<boolean>((resolve) => {
      const offer: Offer = { held, end: resolve };
      timer = setTimeout(() => {
        if (place.offer !== offer) return;
        // The invocation of a request that does not answer was killed.
        place.offer = undefined;
        this.#places.delete(place);
        resolve(false);
      }, HAND_OVER_MS);
      place.offer = offer;
      place.wake?.();
    });
    clearTimeout(timer);
    return isAccepted;
  }

  /**
   * Lets a request wait for its turn. Resolves at once if it need not wait or may not wait.
   *
   * @param first the first decision
   * @returns the last decision. What a denied request was charged is given back: see `Adjustment.upTo`
   */
  async takeTurn(first: Decided, request: WaitingRequest): Promise<Decided> {
    try {
      return await this.#takeTurn(first, request);
    } finally {
      if (request.hasWaited) request.waitedMs = Math.max(0, this.#time() - request.waitsFrom);
    }
  }

  async #takeTurn(first: Decided, request: WaitingRequest): Promise<Decided> {
    this.#wakeNext(first);
    const decided = await this.#awaitSlots(first, request);
    if (!decided.answer.admitted && lackingOf(decided).length === 0) return atCapacity(decided);
    const delaysMs = delaysOf(decided);
    const delayMs = Math.max(0, ...delaysMs);
    if (delayMs === 0) return decided;
    // While a request waits for quota, it holds no slot, because other clients may share the slots.
    request.slots.giveBack();
    const reserved = decided.counters.filter((_, at) => (delaysMs[at] ?? 0) > 0);
    const key = reserved[0]?.counter.key ?? "";
    const longestMs = Math.max(...reserved.map(({ rule }) => rule.waitMs)) + CLOCK_GRACE_MS;
    // The last call for a slot takes time too.
    const restMs = 0.9 * (windowsEndMs(decided, delaysMs) - delayMs);
    const isPossible = delayMs <= longestMs && restMs > 0;
    const endsAt = this.#time() + delayMs;
    const place = isPossible
      ? this.#enter(request, key, endsAt, request.sleptMs + delayMs)
      : undefined;
    const refunds = refundsOf(decided, delaysMs);
    let last = atCapacity(withoutCharge(decided));
    try {
      if (!place) return last;
      const [refund] = refunds.reserved;
      if (refund && refunds.reserved.length === 1) {
        const window = windowAt(decided.answer.now + delayMs, refund).index;
        place.reservation = { beginsAt: place.endsAt, window, refund };
      }
      const isTurn = await this.#awaitQuota(place);
      // The quota may have been exchanged with that of another request.
      const { reservation } = place;
      if (reservation) refunds.reserved = [reservation.refund];
      if (!isTurn) return last;
      const passing = begun(decided, delaysMs, reservation?.window);
      let until = endsAt + restMs;
      if (reservation)
        until = Math.min(until, reservation.beginsAt + 0.9 * reservation.refund.windowMs);
      last = await this.#retakeSlots(passing, request, until);
      return last;
    } finally {
      // A client that has hung up gives back only its place. Otherwise it could send any number of requests that no
      // rule counts.
      if (!last.answer.admitted) {
        if (!request.signal.aborted && refunds.others.length > 0) request.adjust(refunds.others);
        await this.#giveBack(refunds.reserved, request);
      }
    }
  }

  /**
   * Gives reserved quota back. If many requests are denied at the same time, the last one does so first, because quota
   * is given back only if nobody has reserved after it.
   */
  async #giveBack(reserved: readonly Refund[], { adjust }: WaitingRequest): Promise<void> {
    this.#refunds.push(...reserved);
    // The other requests of the same call to the store add theirs meanwhile.
    await undefined;
    for (const each of this.#refunds.splice(0).sort(byPlace)) adjust([each]);
  }

  /**
   * Waits until the request lacks no slot any more.
   *
   * @param from when the wait for slots began
   * @param until the end of the wait, if it is before the end of `wait`
   */
  async #awaitSlots(
    first: Decided,
    request: WaitingRequest,
    decide: Decide = request.decide,
    from = request.waitsFrom,
    until = Number.POSITIVE_INFINITY,
  ): Promise<Decided> {
    let decided = first;
    let decidedAt = from;
    let place: Place | undefined;
    let retries = 0;
    let failures = 0;
    try {
      while (retries < MAX_RETRIES && !request.signal.aborted) {
        const [lacking] = lacksOnlySlots(decided) ? lackingOf(decided) : [];
        if (!lacking) break;
        const { counter, rule } = lacking;
        const endsAt = Math.min(until, request.waitsFrom + rule.waitMs);
        if (this.#time() >= endsAt) break;
        if (!place) {
          place = this.#enter(request, counter.key, endsAt, rule.waitMs);
          if (!place) break;
          // A slot may have been given back since the decision began.
          place.hasMissed = (this.#returnedAt.get(counter.key) ?? 0) >= from;
        }
        place.lacks = lackingOf(decided).map((each) => each.counter.key);
        place.key = counter.key;
        place.limit = counter.limit;
        place.endsAt = endsAt;
        place.maxSleptMs = rule.waitMs;
        const needsOnlySlot = decided.counters.length === 1;
        if (this.#store.awaitSlot) {
          const turn = await this.#awaitTurn(place, counter, endsAt, failures);
          if (turn === "over") return aged(decided, this.#time() - decidedAt);
          if (turn === "taken" && needsOnlySlot) {
            void this.#renew(request, counter, CLAIM_RENEWALS);
            return this.#admit(request, decided, counter);
          }
          if (turn === "failed") failures += 1;
          else retries += 1;
        } else if (!place.hasMissed) {
          if (!(await this.#awaitRetry(place, retries + 1, from, endsAt))) retries += 1;
          if (request.signal.aborted) break;
        }
        place.hasMissed = false;
        const now = this.#time();
        const counters =
          decide === request.decide
            ? decided.counters.map((each) => afterWait(each, request.waitsFrom, now))
            : decided.counters;
        const offered = place.accept()?.held;
        // The requests of other tiers may hold more slots than this one may have.
        const kept = needsOnlySlot && !rule.tiers && offered && slotToKeep(offered, counter, now);
        if (kept) {
          void this.#renew(request, kept);
          return this.#admit(request, decided, kept, offered.takenAt);
        }
        const unused = offered ? unusedOf(offered) : [];
        const answer = await decide(counters, unused);
        decided = { counters, answer };
        decidedAt = now;
        this.#wakeNext(decided);
        // Others may use the slots that were handed over in vain.
        for (const { counter: returned } of unused) {
          const at = counters.findIndex((each) => each.counter.key === returned.key);
          if (at !== -1 && answer.admitted) continue;
          this.#wake(returned.key, answer.tallies[at]?.count ?? -1);
        }
        if (answer.admitted) break;
        if (this.#store.awaitSlot) request.slots.giveUp(this.#store, counter);
        decided = { counters: counters.map(withNewSlot), answer };
      }
    } finally {
      if (place) this.#leave(place);
    }
    return decided;
  }

  /** Lets a request pass that lacks nothing but a slot, and has got one without a decision. */
  #admit(
    { slots }: WaitingRequest,
    { counters, answer }: Decided,
    slot: Demand,
    takenAt?: number,
  ): Decided {
    const tallies = answer.tallies.map((tally) => tally && { ...tally, count: slot.ceiling });
    const admitted = { ...answer, admitted: true, tallies };
    slots.add(this.#store, [slot], Promise.resolve(admitted), takenAt);
    return { counters, answer: admitted };
  }

  /**
   * Renews a slot that was taken for a short time, or some time ago, and so learns whether the store has more of them.
   * After the release of the slot, a renewal has no effect.
   */
  async #renew(request: WaitingRequest, slot: Demand, attempts = 1): Promise<void> {
    const [tally] = await request.adjust([{ ...slot, cost: 0 }]);
    if (tally) return this.#wake(slot.key, tally.count);
    if (attempts === 1) return;
    await new Promise((resolve) => setTimeout(resolve, this.#claimMs / CLAIM_RENEWALS));
    await this.#renew(request, slot, attempts - 1);
  }

  /** Waits until the store has taken a slot for the request, or has failed. */
  async #awaitTurn(
    place: Place,
    counter: Demand,
    endsAt: number,
    failures: number,
  ): Promise<"taken" | "late" | "failed" | "over"> {
    const { signal, slots } = place.request;
    const calledAt = this.#time();
    const leftMs = endsAt - calledAt;
    let turn: "taken" | "late" | "denied" | "failed" | undefined;
    const called = this.#store.awaitSlot?.(counter, leftMs, this.#claimMs).then(
      (waitedMs) => {
        if (waitedMs === undefined) turn = "denied";
        // After a late answer, another request may have the slot.
        else turn = this.#time() - calledAt - waitedMs < this.#claimMs / 2 ? "taken" : "late";
      },
      () => {
        turn = "failed";
      },
    );
    await place.sleep(leftMs, called);
    // The object may have been replaced by a deploy. The requests that waited there must not all return at once.
    if (turn === "failed") {
      const pauseMs = MAX_PAUSE_MS * 2 ** failures * Math.random();
      await place.sleep(Math.min(pauseMs, endsAt - this.#time()));
    }
    if (!signal.aborted && turn && turn !== "denied") return turn;
    if (turn !== "denied") slots.giveUp(this.#store, counter);
    return "over";
  }

  /**
   * Waits until another request wakes this one, or until the time of the retry. The times of the retries are random. For
   * the first request that waits, their intervals double. Those of others are even, so that an isolate with many
   * waiting requests always asks soon. The last retry is at the end of the wait.
   *
   * @returns whether another request has woken this one
   */
  #awaitRetry(place: Place, retry: number, from: number, endsAt: number): Promise<boolean> {
    const shareAt = (count: number) =>
      place.isFirst ? (2 ** count - 1) / (2 ** MAX_RETRIES - 1) : count / MAX_RETRIES;
    const random = retry === MAX_RETRIES ? 1 : Math.random();
    const share = shareAt(retry - 1) + random * (shareAt(retry) - shareAt(retry - 1));
    return place.sleep(Math.max(0, from + share * (endsAt - from) - this.#time()));
  }

  /** Waits until the window has begun whose quota the request has reserved. @returns whether the request may go on */
  async #awaitQuota(place: Place): Promise<boolean> {
    const { signal } = place.request;
    let isWoken = true;
    while (isWoken && !signal.aborted) {
      const leftMs = (place.reservation?.beginsAt ?? place.endsAt) - this.#time();
      isWoken = leftMs > 0 && (await place.sleep(leftMs));
    }
    this.#leave(place);
    if (!signal.aborted) return true;
    this.#exchange(place);
    return false;
  }

  /**
   * Exchanges the quota of a request that has hung up with that of the last request that waits for the same counter. So
   * that request passes earlier, and the quota that is given back is the last one that was reserved.
   */
  #exchange(place: Place): void {
    let last = place;
    for (const each of this.#places) {
      const [one, other] = [each.reservation, last.reservation];
      if (each.key !== place.key || !one || !other) continue;
      if (one.refund.cost === other.refund.cost && isAfter(one.refund, other.refund)) last = each;
    }
    [place.reservation, last.reservation] = [last.reservation, place.reservation];
    if (last !== place) last.wake?.();
  }

  /** Takes slots again after a wait for quota, until the window of the quota ends. */
  async #retakeSlots(decided: Decided, request: WaitingRequest, until: number): Promise<Decided> {
    const counters = decided.counters.map(withNewSlot);
    if (!counters.some(isSlot)) return decided;
    const before = withoutCharge(decided);
    const decide: Decide = async (all, unused) => {
      const { admitted, tallies } = await request.decide(all.filter(isSlot), unused);
      const { answer } = admitted ? decided : before;
      const own = tallies.values();
      const merged = all.map((each, at) => (isSlot(each) ? own.next().value : answer.tallies[at]));
      return { ...answer, admitted, tallies: merged };
    };
    const first = { counters, answer: await decide(counters) };
    return this.#awaitSlots(first, request, decide, this.#time(), until);
  }

  /** After an admission: wakes the next request that waits for the same slots, if the store has more of them. */
  #wakeNext({ counters, answer }: Decided): void {
    if (!answer.admitted || this.#places.size === 0) return;
    for (const [at, { counter }] of counters.entries()) {
      if (counter.slot !== undefined) this.#wake(counter.key, answer.tallies[at]?.count ?? 0);
    }
  }

  /** Wakes the first request that waits for these slots and whose limit is above a number. An object wakes its own. */
  #wake(key: string, above: number): void {
    if (this.#store.awaitSlot) return;
    for (const each of this.#places) {
      if (each.key !== key || each.limit <= above || !each.wake) continue;
      each.wake();
      return;
    }
  }

  /** @returns undefined if too many requests wait */
  #enter(
    request: WaitingRequest,
    key: string,
    endsAt: number,
    maxSleptMs: number,
  ): Place | undefined {
    const others = this.#placesFor(key).length;
    if (this.isFull || others >= MAX_WAITING_FOR_ONE) return undefined;
    const place = new Place(request, key, endsAt, maxSleptMs, others === 0, this.#time);
    this.#places.add(place);
    return place;
  }

  /** Returns the places of the requests that wait for a counter, or all places. */
  #placesFor(key?: string): Place[] {
    const now = this.#time();
    const places = [...this.#places].filter((each) => key === undefined || each.key === key);
    // A request that has not left in time was killed.
    for (const each of places) if (each.endsAt < now - HAND_OVER_MS) this.#places.delete(each);
    return places.filter((each) => this.#places.has(each));
  }

  #leave(place: Place): void {
    this.#places.delete(place);
    place.offer?.end(false);
    place.offer = undefined;
  }
}

/** Returns a decision without the windows that have ended since then. */
function aged({ counters, answer }: Decided, passedMs: number): Decided {
  const tallies = answer.tallies.map((tally, at) => {
    if (!tally || counters[at]?.window.concurrent) return tally;
    const resetMs = tally.resetMs - Math.max(0, passedMs);
    return resetMs > 0 ? { ...tally, resetMs } : undefined;
  });
  return { counters, answer: { ...answer, tallies } };
}

/** Returns the offered slot if a request may keep it without a decision. */
function slotToKeep(offered: HeldGroup, wanted: Demand, now: number): Demand | undefined {
  const [slot, ...others] = offered.counters;
  if (!slot || others.length > 0 || slot.ceiling > wanted.ceiling) return undefined;
  const freshMs = MAX_SHARE_OF_KEPT * Math.min(slot.windowMs, wanted.windowMs);
  return now - offered.takenAt < freshMs ? slot : undefined;
}

function isSlot({ window }: RuleCounter): boolean {
  return window.concurrent === true;
}

function withNewSlot(ruleCounter: RuleCounter): RuleCounter {
  const { counter } = ruleCounter;
  return counter.slot
    ? { ...ruleCounter, counter: { ...counter, slot: newSlotId() } }
    : ruleCounter;
}

/** Whether a request lacks at most slots for which it may wait. */
export function lacksOnlySlots(decided: Decided): boolean {
  return lackingOf(decided).every((each) => isSlot(each) && waits(each.rule));
}

/** Returns the counters that deny a request. */
function lackingOf({ counters, answer }: Decided): RuleCounter[] {
  if (answer.admitted) return [];
  return counters.filter(({ counter }, at) => {
    const tally = answer.tallies[at];
    return tally && exceeds(counter, tally);
  });
}

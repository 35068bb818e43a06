import { type Adjustment, type Demand, type UnusedQuota, withCost } from "../engine/counter.ts";
import { newSlotId } from "../engine/slots.ts";
import type { Answer, Store } from "../stores/store.ts";
import { afterWait, type RuleCounter, waits } from "./counters.ts";
import { chargedWindowOf, exceeds, quotasOf } from "./decision.ts";
import type { HeldSlots } from "./held-slots.ts";

/** The maximum number of requests of an isolate that wait, and of those that wait for the same counter. */
export const MAX_WAITING = 1000;
export const MAX_WAITING_FOR_ONE = 250;

/**
 * How often a request asks for a slot again, if the store knows no order of arrival. With the first decision, these
 * are five calls.
 */
const MAX_RETRIES = 4;

/** How long a request that gives a slot back waits for the request that shall take it, in milliseconds. */
const HAND_OVER_MS = 50;

/** The longest pause after a failed call, in milliseconds. */
const MAX_PAUSE_MS = 500;

/** The longest delay beyond `wait`, in milliseconds, because the clocks of the Worker and the store differ slightly. */
const CLOCK_GRACE_MS = 1000;

/** The decision on the enforced rules, and the counters that were decided. */
export interface Decided {
  readonly counters: readonly RuleCounter[];
  readonly answer: Answer;
}

/** A request that may wait. */
export interface WaitingRequest {
  /** When the decision began, in milliseconds since the Unix epoch. */
  readonly waitsFrom: number;
  /** Aborted when the client hangs up. */
  readonly signal: AbortSignal;
  readonly slots: HeldSlots;
  /** Decides counters. @param unused slots to return before */
  readonly decide: (
    counters: readonly RuleCounter[],
    unused?: readonly UnusedQuota[],
  ) => Promise<Answer>;
  /** Changes counters in the background. */
  readonly adjust: (counters: readonly Adjustment[]) => void;
}

/** Slots that one request gives back and another one takes. */
interface Offer {
  readonly unused: readonly UnusedQuota[];
  readonly end: (isAccepted: boolean) => void;
}

/** A place in the waiting room. */
class Place {
  /** The key of the counter for which the request waits. */
  key: string;
  readonly endsAt: number;
  offer: Offer | undefined;
  /** Undefined while the request does not sleep. */
  wake: (() => void) | undefined;

  constructor(key: string, endsAt: number) {
    this.key = key;
    this.endsAt = endsAt;
  }

  /** Waits for some time; until the client hangs up, another request offers a slot, or `until` resolves. */
  async sleep(ms: number, signal: AbortSignal, until?: Promise<unknown>): Promise<void> {
    if (signal.aborted) return;
    let wake = () => {};
    let timer!: ReturnType<typeof setTimeout>;
    await new Promise<void>((resolve) => {
      wake = resolve;
      this.wake = () => {
        this.wake = undefined;
        resolve();
      };
      timer = setTimeout(wake, ms);
      signal.addEventListener("abort", wake);
      until?.then(wake);
    });
    // Only the invocation that has started a timer can end it, but another one may have woken this one.
    this.wake = undefined;
    clearTimeout(timer);
    signal.removeEventListener("abort", wake);
  }

  /** Takes an offer, so that the next decision returns its slots. */
  accept(): readonly UnusedQuota[] {
    const { unused = [], end } = this.offer ?? {};
    this.offer = undefined;
    end?.(true);
    return unused;
  }
}

/**
 * The requests of an isolate that wait for their turn: for quota that they have reserved, or for a slot. Waiting
 * requests hold no slots.
 *
 * In a store that knows the order of arrival, a slot goes to the first request. With other stores, a request that gives
 * a slot back offers it to the first request of this isolate that waits, whose call returns the slot and takes it. Until
 * then, each request asks a few times, at random moments, for slots that other isolates have given back.
 */
export class WaitingRoom {
  readonly #store: Store;
  readonly #claimMs: number;
  readonly #time: () => number;
  readonly #places = new Set<Place>();

  /** @param claimMs the time in which a request whose turn it is must take its slot, in milliseconds */
  constructor(store: Store, claimMs: number, time: () => number) {
    this.#store = store;
    this.#claimMs = claimMs;
    this.#time = time;
  }

  get isFull(): boolean {
    if (this.#places.size < MAX_WAITING) return false;
    // The invocation of a request that never left was killed.
    for (const each of this.#places) if (each.endsAt < this.#time()) this.#places.delete(each);
    return this.#places.size >= MAX_WAITING;
  }

  /** Offers returned slots to the first request that waits for one of them. See `SlotOptions`. */
  async handOver(store: Store, unused: readonly UnusedQuota[]): Promise<boolean> {
    if (this.#places.size === 0 || store !== this.#store || store.awaitSlot) return false;
    for (const place of this.#places) {
      if (!place.wake || !unused.some(({ counter }) => counter.key === place.key)) continue;
      let timer!: ReturnType<typeof setTimeout>;
      const answer = await new Promise<"accepted" | "declined" | "none">((resolve) => {
        place.offer = {
          unused,
          end: (isAccepted) => resolve(isAccepted ? "accepted" : "declined"),
        };
        timer = setTimeout(() => {
          place.offer = undefined;
          resolve("none");
        }, HAND_OVER_MS);
        place.wake?.();
      });
      clearTimeout(timer);
      // An invocation that does not answer was killed.
      if (answer === "none") this.#leave(place);
      if (answer !== "declined") return answer === "accepted";
    }
    return false;
  }

  /**
   * Lets a request wait for its turn. Resolves at once if it need not wait or may not wait.
   *
   * @param first the first decision
   * @returns the last decision; `first` itself if the request has not waited. A denied request is charged nothing
   */
  async takeTurn(first: Decided, request: WaitingRequest): Promise<Decided> {
    this.#wakeNext(first);
    const decided = await this.#awaitSlots(first, request);
    const delaysMs = delaysOf(decided);
    const delayMs = Math.max(0, ...delaysMs);
    if (delayMs === 0) return decided;
    // While a request waits for quota, it holds no slot, because other clients may share the slots.
    request.slots.giveBack();
    const isTurn = await this.#awaitQuota(decided, delayMs, request);
    const last = isTurn ? await this.#retakeSlots(decided, request) : withoutReservation(decided);
    if (!last.answer.admitted) this.#refund(decided, delaysMs, request);
    return last;
  }

  /** Waits until the request lacks no slot any more. */
  async #awaitSlots(
    first: Decided,
    request: WaitingRequest,
    decide: WaitingRequest["decide"] = request.decide,
  ): Promise<Decided> {
    const { waitsFrom } = request;
    let decided = first;
    let place: Place | undefined;
    try {
      for (let retry = 1; retry <= MAX_RETRIES; retry++) {
        const lacking = lackingSlotOf(decided);
        const endsAt = waitsFrom + (lacking?.rule.waitMs ?? 0);
        if (!lacking || this.#time() >= endsAt) break;
        place ??= this.#enter(lacking.counter.key, endsAt);
        if (!place) break;
        place.key = lacking.counter.key;
        const isTurn = this.#store.awaitSlot
          ? await this.#awaitTurn(place, lacking.counter, endsAt, request)
          : await this.#awaitRetry(place, retry, lacking.rule.waitMs, request);
        if (!isTurn) break;
        const now = this.#time();
        const counters = decided.counters.map((each) => afterWait(each, waitsFrom, now));
        const answer = await decide(counters, place.accept());
        decided = { counters, answer };
        this.#wakeNext(decided);
        if (answer.admitted) break;
        if (this.#store.awaitSlot) request.slots.giveUp(this.#store, lacking.counter);
        decided = { answer, counters: counters.map(withNewSlot) };
      }
    } finally {
      if (place) this.#leave(place);
    }
    return decided;
  }

  /**
   * Waits until the store has taken a slot for the request.
   *
   * @returns whether the request shall be decided again
   */
  async #awaitTurn(
    place: Place,
    counter: Demand,
    endsAt: number,
    { signal, slots }: WaitingRequest,
  ): Promise<boolean> {
    const leftMs = endsAt - this.#time();
    let turn: "taken" | "denied" | "failed" | undefined;
    const called = this.#store.awaitSlot?.(counter, leftMs, this.#claimMs).then(
      (isTaken) => (turn = isTaken ? "taken" : "denied"),
      () => (turn = "failed"),
    );
    await place.sleep(leftMs, signal, called);
    // The object may have been replaced by a deploy. The requests that waited there must not all return at once.
    if (turn === "failed")
      await place.sleep(Math.min(leftMs, MAX_PAUSE_MS) * Math.random(), signal);
    const isTurn = !signal.aborted && (turn === "taken" || turn === "failed");
    if (!isTurn && turn !== "denied") slots.giveUp(this.#store, counter);
    return isTurn;
  }

  /**
   * Waits until another request offers a slot, or until the time of the retry. The times of the retries are random, with
   * intervals that double. The last one is the end of the wait.
   */
  async #awaitRetry(
    place: Place,
    retry: number,
    waitMs: number,
    { waitsFrom, signal }: WaitingRequest,
  ): Promise<boolean> {
    const earliest = 2 ** (retry - 1) - 1;
    const latest = 2 ** retry - 1;
    const random = retry === MAX_RETRIES ? 1 : Math.random();
    const share = (earliest + random * (latest - earliest)) / (2 ** MAX_RETRIES - 1);
    await place.sleep(Math.max(0, waitsFrom + share * waitMs - this.#time()), signal);
    return !signal.aborted;
  }

  /** Waits until the windows have begun whose quota the request has reserved. @returns whether it may go on */
  async #awaitQuota(
    { counters }: Decided,
    delayMs: number,
    { signal }: WaitingRequest,
  ): Promise<boolean> {
    const reserving = counters.filter(isReserving);
    const longestMs = Math.max(...reserving.map(({ rule }) => rule.waitMs));
    if (delayMs > longestMs + CLOCK_GRACE_MS) return false;
    const place = this.#enter(reserving[0]?.counter.key ?? "", this.#time() + delayMs);
    if (!place) return false;
    await place.sleep(delayMs, signal);
    this.#leave(place);
    return !signal.aborted;
  }

  /** Takes slots again after a wait for quota. */
  async #retakeSlots(decided: Decided, request: WaitingRequest): Promise<Decided> {
    const counters = decided.counters.map(withNewSlot);
    if (!counters.some(isSlot)) return { ...decided };
    const before = withoutCharge(decided);
    const decide: WaitingRequest["decide"] = async (all, unused) => {
      const { admitted, tallies } = await request.decide(all.filter(isSlot), unused);
      const { answer } = admitted ? decided : before;
      const own = tallies.values();
      const merged = all.map((each, at) => (isSlot(each) ? own.next().value : answer.tallies[at]));
      return { ...answer, admitted, tallies: merged };
    };
    return this.#awaitSlots({ counters, answer: await decide(counters) }, request, decide);
  }

  /**
   * Gives back the quota of a request that was not let through. If the client has hung up, gives back only its place:
   * the reserved quota. Otherwise a client could send any number of requests that no rule counts.
   */
  #refund(
    { counters, answer }: Decided,
    delaysMs: readonly number[],
    { waitsFrom, signal, adjust }: WaitingRequest,
  ): void {
    const waitedMs = this.#time() - waitsFrom;
    const refunds = counters.flatMap(({ counter }, at): Adjustment[] => {
      const tally = answer.tallies[at];
      if (counter.checkOnly || counter.slot !== undefined || !tally) return [];
      const refund = withCost(counter, -counter.cost);
      const delayMs = delaysMs[at] ?? 0;
      // Later windows have not repaid this charge yet, so it is still in the count. The call takes time.
      if (delayMs > 0 && waitedMs < delayMs + counter.windowMs / 2) return [refund];
      if (signal.aborted) return [];
      return [{ ...refund, chargedIn: chargedWindowOf(counter, tally, answer.now) }];
    });
    if (refunds.length > 0) adjust(refunds);
  }

  /** After an admission: wakes the next request that waits for the same slots, if the store has more of them. */
  #wakeNext({ counters, answer }: Decided): void {
    if (!answer.admitted || this.#places.size === 0 || this.#store.awaitSlot) return;
    for (const [at, { counter }] of counters.entries()) {
      if (counter.slot === undefined || (answer.tallies[at]?.count ?? 0) >= counter.limit) continue;
      for (const each of this.#places) {
        if (each.key !== counter.key || !each.wake) continue;
        each.wake();
        break;
      }
    }
  }

  /** @returns undefined if too many requests wait */
  #enter(key: string, endsAt: number): Place | undefined {
    if (this.isFull) return undefined;
    let same = 0;
    for (const each of this.#places) if (each.key === key) same += 1;
    if (same >= MAX_WAITING_FOR_ONE) return undefined;
    const place = new Place(key, endsAt);
    this.#places.add(place);
    return place;
  }

  #leave(place: Place): void {
    this.#places.delete(place);
    place.offer?.end(false);
  }
}

function isSlot({ window }: RuleCounter): boolean {
  return window.concurrent === true;
}

function isReserving({ counter, capacity }: RuleCounter): boolean {
  return counter.ceiling > capacity;
}

function withNewSlot(ruleCounter: RuleCounter): RuleCounter {
  const { counter } = ruleCounter;
  return counter.slot
    ? { ...ruleCounter, counter: { ...counter, slot: newSlotId() } }
    : ruleCounter;
}

/** Returns the first slot for which a denied request may wait; undefined if it lacks anything else too. */
export function lackingSlotOf({ counters, answer }: Decided): RuleCounter | undefined {
  if (answer.admitted) return undefined;
  const lacking = counters.filter(({ counter }, at) => {
    const tally = answer.tallies[at];
    return tally && exceeds(counter, tally);
  });
  return lacking.every((each) => isSlot(each) && waits(each.rule)) ? lacking[0] : undefined;
}

/** Returns for each counter the time in milliseconds until later windows have granted the reserved quota. */
function delaysOf({ counters, answer }: Decided): number[] {
  if (!answer.admitted || !counters.some(isReserving)) return [];
  // The answer to an admitted request has a tally for each counter.
  return quotasOf(counters, answer).map(({ reservationDelayMs }) => reservationDelayMs);
}

/** Returns the denial of a request whose charges are given back. */
function withoutCharge({ counters, answer }: Decided): Decided {
  const tallies = answer.tallies.map((tally, at) => {
    const { cost, checkOnly } = (counters[at] as RuleCounter).counter;
    return tally && !checkOnly ? { ...tally, count: Math.max(0, tally.count - cost) } : tally;
  });
  return { counters, answer: { ...answer, admitted: false, tallies } };
}

/** Returns the denial of a request that may not wait. */
function withoutReservation(decided: Decided): Decided {
  const { counters, answer } = withoutCharge(decided);
  const own = counters.map((each) => ({
    ...each,
    counter: { ...each.counter, ceiling: each.capacity },
  }));
  return { counters: own, answer };
}

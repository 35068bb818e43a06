import type { Counter } from "../engine/counter.ts";
import { Circuit, type Ticket } from "./circuit.ts";
import { CHECKS_PER_DEADLINE } from "./deadline.ts";
import { ObjectCircuits } from "./object-circuits.ts";
import { StoreError } from "./store-error.ts";
import { type WaitingCall, WaitingCalls } from "./waiting-calls.ts";

/** `closed`: all calls reach the store. `open`: only an occasional probe reaches the store. */
export type BreakerState = "closed" | "open";

/** The part of a store that a state applies to: the whole store or one of its objects. */
export type BreakerScope = "store" | "object";

export interface BreakerOptions {
  /** The time in milliseconds after which a probe without an answer counts as lost. */
  readonly timeoutMs: number;
  /**
   * The number of clients whose objects must have failed before the breaker opens for the whole
   * store. If each client has its own object, a single client can overload this object. One
   * overloaded object must not stop the calls for all clients.
   *
   * @default 1, which suits a store that is not made of objects
   */
  readonly clients?: number;
  /** Called with each change of state. */
  readonly onChange?: (state: BreakerState, scope: BreakerScope) => void;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
}

/**
 * A circuit breaker for the calls to a store. After a few failures in a row, the store is not called for
 * a while. An outage then delays only those few requests, and a struggling store can recover.
 *
 * While the breaker is open, calls fail at once with `circuit-open`. Calls that are already waiting
 * fail too, but the requests that they have sent continue. After a pause, one call goes through as
 * a probe. If the probe succeeds, the breaker closes. If the probe fails, another pause begins.
 *
 * If the store is made of objects, each object that fails has its own circuit. A failed call is
 * attributed to only one of its objects, the object with the most failures in a row. So if all
 * calls need the same broken object, only the circuit of this object opens. Failures of that
 * object, or of the shards of one client, do not open the breaker for the whole store.
 *
 * A call that missed its deadline because the isolate was busy is no failure of the store. Otherwise
 * a few requests with much work could open the breaker for all clients.
 */
export class Breaker {
  readonly #clients: number;
  readonly #onChange: (state: BreakerState, scope: BreakerScope) => void;
  readonly #clock: () => number;
  readonly #store: Circuit;
  readonly #objects: ObjectCircuits;
  /** The identities that have failed since the last success, at most `#clients` of them. */
  readonly #failedIdentities = new Set<string>();
  readonly #waiting: WaitingCalls;
  readonly #stepMs: number;
  /** When a call last began or was checked, by the isolate's clock. */
  #seenAt = 0;

  constructor({ timeoutMs, clients = 1, onChange = () => {}, clock = Date.now }: BreakerOptions) {
    this.#clients = clients;
    this.#onChange = onChange;
    this.#clock = clock;
    this.#store = new Circuit(timeoutMs);
    this.#objects = new ObjectCircuits(timeoutMs);
    this.#waiting = new WaitingCalls(timeoutMs, clients);
    this.#stepMs = timeoutMs / CHECKS_PER_DEADLINE;
  }

  /**
   * @throws {StoreError} ("circuit-open") if the call was not made, or if it had not ended when a
   * circuit opened or the store stalled
   */
  async run<Result>(counters: readonly Counter[], call: () => Promise<Result>): Promise<Result> {
    const now = this.#clock();
    const identities = this.#clients > 1 ? identitiesOf(counters) : [];
    if (this.#clients > 1 && identities.length === 0) {
      // The call only returns unused quota. The store does not wait for these returns, so a success
      // does not prove that the store works.
      if (this.#store.isOpen) throw circuitOpen(this.#store);
      return await call();
    }
    const circuits = this.#circuitsOf(identities);
    const paused = circuits.find((circuit) => circuit.isPaused(now));
    if (paused) throw circuitOpen(paused);
    this.#noteBusyTime();
    if (!this.#store.isOpen && this.#waiting.isStalled(identities, now)) throw stalled();
    const tickets = new Map(circuits.map((circuit) => [circuit, circuit.enter(now)]));
    const waitingCall = this.#waiting.enter(identities, now);
    const attempt = this.#attempt(call, waitingCall, tickets);
    // The result of a probe decides whether later calls are made, so a probe waits for its whole
    // deadline.
    const isProbe = [...tickets.values()].some((ticket) => ticket > 0);
    return isProbe ? await attempt : await this.#waitWhileClosed(attempt, waitingCall);
  }

  /** Makes a call and records its outcome. */
  async #attempt<Result>(
    call: () => Promise<Result>,
    waitingCall: WaitingCall,
    tickets: ReadonlyMap<Circuit, Ticket>,
  ): Promise<Result> {
    try {
      const result = await call();
      this.#waiting.succeed(waitingCall, this.#clock());
      this.#recordSuccess(waitingCall.identities);
      return result;
    } catch (error) {
      this.#waiting.leave(waitingCall);
      const wasBusy = error instanceof StoreError && error.wasBusy;
      if (!wasBusy) this.#recordFailure(waitingCall.identities, tickets, error);
      throw error;
    }
  }

  /**
   * Waits for a call until a circuit opens or the store is stalled. The request that was sent
   * continues, and its outcome is still recorded.
   */
  async #waitWhileClosed<Result>(
    attempt: Promise<Result>,
    waitingCall: WaitingCall,
  ): Promise<Result> {
    const { identities } = waitingCall;
    const { promise: opened, reject } = Promise.withResolvers<never>();
    const timer = setInterval(() => {
      this.#noteBusyTime();
      const open = this.#circuitsOf(identities).find(({ isOpen }) => isOpen);
      if (open) reject(circuitOpen(open));
      else if (this.#waiting.isStalled(identities, this.#clock(), waitingCall)) reject(stalled());
    }, this.#stepMs);
    try {
      return await Promise.race([attempt, opened]);
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * While calls wait, one of them is checked in each step. If nothing was checked for longer, the
   * isolate was busy, and the answers of the waiting calls may not have been read. More than two
   * steps do not count at all.
   */
  #noteBusyTime(): void {
    const now = Date.now();
    const tookMs = now - this.#seenAt;
    const busyMs = tookMs > 2 * this.#stepMs ? tookMs : tookMs - this.#stepMs;
    if (busyMs > 0) this.#waiting.postpone(busyMs, this.#clock());
    this.#seenAt = now;
  }

  /**
   * Returns the circuits of a call: the circuit of the store, and the circuits of the call's
   * objects that have failed.
   */
  #circuitsOf(identities: readonly string[]): Circuit[] {
    return [this.#store, ...this.#objects.of(identities)];
  }

  #recordSuccess(identities: readonly string[]): void {
    if (this.#store.succeed()) this.#onChange("closed", "store");
    this.#failedIdentities.clear();
    const closed = this.#objects.succeed(identities);
    for (let count = 0; count < closed; count++) this.#onChange("closed", "object");
  }

  #recordFailure(
    identities: readonly string[],
    tickets: ReadonlyMap<Circuit, Ticket>,
    error: unknown,
  ): void {
    const now = this.#clock();
    const failure = error instanceof StoreError ? error.failure : "internal";
    let failedIdentity = "";
    if (this.#clients > 1) {
      const { culprit, opened } = this.#objects.fail(identities, tickets, now, failure);
      failedIdentity = culprit;
      if (opened) this.#onChange("open", "object");
    }
    if (this.#failedIdentities.size < this.#clients) this.#failedIdentities.add(failedIdentity);
    const mayOpen = this.#failedIdentities.size >= this.#clients;
    const opened = this.#store.fail(tickets.get(this.#store) ?? 0, now, failure, mayOpen);
    if (opened) this.#onChange("open", "store");
  }
}

/** The distinct identities of a call. A client's shards (`identity#n`) count as one identity. */
function identitiesOf(counters: readonly Counter[]): string[] {
  return [...new Set(counters.map(({ identity }) => identity.split("#", 1)[0] as string))];
}

function circuitOpen({ reason }: Circuit): StoreError {
  return new StoreError("circuit-open", reason);
}

function stalled(): StoreError {
  return new StoreError("circuit-open", "too many calls are waiting for an answer");
}

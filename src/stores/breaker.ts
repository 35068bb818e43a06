import type { Counter } from "../engine/counter.ts";
import { CHECKS_PER_DEADLINE } from "./deadline.ts";
import { StoreError } from "./store.ts";

/** The number of failures in a row after which a store is no longer called. */
export const FAILURES_TO_OPEN = 5;

/** How long an open circuit waits before the next probe, in milliseconds. */
export const PAUSE_MS = 1000;

/**
 * The part of `timeoutMs` in which calls wait for a probe, from its beginning. A store that works again usually answers
 * sooner. Clients that return together after an outage then all get a decision.
 */
const PROBE_SHARE = 0.25;

/** The number of a probe; 0 for a call that is not a probe. */
type Ticket = number;

/**
 * The state of a circuit breaker: closed while calls go through, open after some failures in a row.
 * While the circuit is open, one call at a time goes through as a probe. A probe that never ends
 * counts as lost after `timeoutMs`, so it cannot keep the circuit open.
 */
class Circuit {
  readonly #timeoutMs: number;
  #failures = 0;
  #lastFailure = "";
  #isOpen = false;
  /**
   * The time at which an open circuit sends its next probe. If the clock steps back, the probe is
   * only delayed.
   */
  #probeAt = 0;
  #probes = 0;
  /** When the last probe began, and its end, which never rejects. */
  #probe = { startedAt: 0, ended: Promise.resolve<unknown>(undefined) };

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The number of failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** The reason why the circuit is open, in words for operators. */
  get reason(): string {
    return `after ${this.#failures} failures in a row; the last failure was: ${this.#lastFailure}`;
  }

  /** Whether a call must fail at once. */
  isPaused(now: number): boolean {
    const waitMs = this.#probeAt - now;
    return this.#isOpen && waitMs > 0 && waitMs <= this.#timeoutMs + PAUSE_MS;
  }

  /** Lets a call through. While the circuit is open, this call is the probe. */
  enter(now: number): Ticket {
    if (!this.#isOpen) return 0;
    this.#probeAt = now + this.#timeoutMs;
    this.#probes += 1;
    return this.#probes;
  }

  /** Makes the end of the current probe known to other calls. @param attempt the call that is the probe */
  beginProbe(attempt: Promise<unknown>, now: number): void {
    this.#probe = { startedAt: now, ended: attempt.catch(() => {}) };
  }

  /** Waits for the end of a probe that has just begun; otherwise resolves at once. */
  async awaitProbe(now: number): Promise<void> {
    const { startedAt, ended } = this.#probe;
    const restMs = startedAt + this.#timeoutMs * PROBE_SHARE - now;
    if (restMs <= 0 || restMs > this.#timeoutMs) return;
    const { promise: passed, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, restMs);
    await Promise.race([ended, passed]);
    clearTimeout(timer);
  }

  /** Records a call that succeeded. @returns whether it closed the circuit */
  succeed(): boolean {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#failures = 0;
    return wasOpen;
  }

  /**
   * Records a call that failed.
   *
   * @param mayOpen whether the circuit may open if there have been enough failures
   * @returns whether this failure opened the circuit
   */
  fail(ticket: Ticket, now: number, failure: string, mayOpen: boolean): boolean {
    this.#failures += 1;
    this.#lastFailure = failure;
    const opens = !this.#isOpen && mayOpen && this.#failures >= FAILURES_TO_OPEN;
    // Lost probes, and calls that began before the circuit opened, do not delay the current probe.
    const isProbe = this.#isOpen && ticket > 0 && ticket === this.#probes;
    if (opens || isProbe) this.#probeAt = now + PAUSE_MS;
    if (opens) this.#isOpen = true;
    return opens;
  }
}

/**
 * The maximum number of circuits. If there are more, the least recently used circuit is removed.
 */
const MAX_OBJECTS = 256;

/** The circuits of the objects that have failed since their last success, by their identities. */
class ObjectCircuits {
  readonly #timeoutMs: number;
  /** The circuits in the order of use, with the most recently used circuit at the end. */
  readonly #circuits = new Map<string, Circuit>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  of(identities: readonly string[]): Circuit[] {
    if (this.#circuits.size === 0) return [];
    return identities.flatMap((identity) => {
      const circuit = this.#circuits.get(identity);
      return circuit ? this.#keep(identity, circuit) : [];
    });
  }

  /** Records a successful call to these objects. @returns how many circuits this call has closed */
  succeed(identities: readonly string[]): number {
    if (this.#circuits.size === 0) return 0;
    let closed = 0;
    for (const identity of identities) {
      if (this.#circuits.get(identity)?.succeed()) closed += 1;
      this.#circuits.delete(identity);
    }
    return closed;
  }

  /**
   * Records that a call to these objects failed. The object with the most failures in a row is the culprit. Only
   * its circuit may open.
   *
   * @param tickets maps each circuit of the call to the call's ticket there
   * @returns the culprit's identity, and whether its circuit opened
   */
  fail(
    identities: readonly string[],
    tickets: ReadonlyMap<Circuit, Ticket>,
    now: number,
    failure: string,
  ): { culprit: string; opened: boolean } {
    const circuits = identities.map((identity) => {
      const circuit = this.#circuits.get(identity) ?? new Circuit(this.#timeoutMs);
      return [identity, this.#keep(identity, circuit)] as const;
    });
    let [culprit = "", most] = [identities[0], 0];
    for (const [identity, { failures }] of circuits) {
      if (failures > most) [culprit, most] = [identity, failures];
    }
    let opened = false;
    for (const [identity, circuit] of circuits) {
      const ticket = tickets.get(circuit) ?? 0;
      if (circuit.fail(ticket, now, failure, identity === culprit)) opened = true;
    }
    return { culprit, opened };
  }

  /** Moves a circuit to the end of the order, and removes the first one if there are too many. */
  #keep(identity: string, circuit: Circuit): Circuit {
    this.#circuits.delete(identity);
    this.#circuits.set(identity, circuit);
    if (this.#circuits.size > MAX_OBJECTS) {
      this.#circuits.delete(this.#circuits.keys().next().value as string);
    }
    return circuit;
  }
}

/** `closed`: all calls reach the store. `open`: only an occasional probe reaches the store. */
export type BreakerState = "closed" | "open";

/** The part of a store that a state applies to: the whole store or one of its objects. */
export type BreakerScope = "store" | "object";

export interface BreakerOptions {
  /** The time in milliseconds after which a probe without an answer counts as lost. */
  readonly timeoutMs: number;
  /**
   * The number of clients whose objects must have failed before the breaker opens for the whole
   * store, because a single client can overload its own object.
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
 * A circuit breaker for the calls to a store. After a few failures in a row, the store is not called for a while. So
 * an outage delays only a few requests, and an overloaded store can recover.
 *
 * While the breaker is open, calls fail at once with `circuit-open`. Calls that already wait for an answer fail with
 * `abandoned`, because the store may still carry them out. After a pause, one call goes through as a probe, and calls
 * that arrive in its first moments wait for it. If the probe succeeds, the breaker closes. If the probe fails, another
 * pause begins.
 *
 * If the store is made of objects, each object that fails has its own circuit. A failed call is attributed to only
 * one of its objects, the object with the most failures in a row. So if all calls need the same broken object, only
 * its circuit opens. The failures of one object, or of the shards of one client, do not open the breaker for the
 * whole store.
 *
 * If a call missed its deadline because the isolate was busy, the call does not count as a failure. Otherwise a few
 * requests with slow code could open the breaker for all clients.
 */
export class Breaker {
  readonly #clients: number;
  readonly #onChange: (state: BreakerState, scope: BreakerScope) => void;
  readonly #clock: () => number;
  readonly #store: Circuit;
  readonly #objects: ObjectCircuits;
  /** The identities that have failed since the last success, at most `#clients` of them. */
  readonly #failedIdentities = new Set<string>();
  /** The time between two checks of a waiting call. */
  readonly #stepMs: number;

  constructor({ timeoutMs, clients = 1, onChange = () => {}, clock = Date.now }: BreakerOptions) {
    this.#clients = clients;
    this.#onChange = onChange;
    this.#clock = clock;
    this.#store = new Circuit(timeoutMs);
    this.#objects = new ObjectCircuits(timeoutMs);
    this.#stepMs = timeoutMs / CHECKS_PER_DEADLINE;
  }

  /**
   * @param call gets the time in milliseconds that it has waited for a probe
   * @throws {StoreError} ("circuit-open") if the call was not made; ("abandoned") if it had not ended when a circuit
   * opened
   */
  async run<Result>(
    counters: readonly Counter[],
    call: (waitedMs: number) => Promise<Result>,
  ): Promise<Result> {
    const arrivedAt = this.#clock();
    const identities = this.#clients > 1 ? identitiesOf(counters) : [];
    if (this.#clients > 1 && identities.length === 0) {
      // This call only returns unused quota. It does not wait for the objects, so its success does not prove that
      // the store works.
      if (this.#store.isOpen) throw circuitOpen(this.#store);
      return await call(0);
    }
    const before = this.#circuitsOf(identities).find((circuit) => circuit.isPaused(arrivedAt));
    if (before) await before.awaitProbe(arrivedAt);
    const now = before ? this.#clock() : arrivedAt;
    const circuits = this.#circuitsOf(identities);
    const paused = circuits.find((circuit) => circuit.isPaused(now));
    if (paused) throw circuitOpen(paused);
    const tickets = new Map(circuits.map((circuit) => [circuit, circuit.enter(now)]));
    const waitedMs = Math.max(0, now - arrivedAt);
    const attempt = this.#attempt(() => call(waitedMs), identities, tickets);
    const probed = circuits.filter((circuit) => (tickets.get(circuit) ?? 0) > 0);
    for (const circuit of probed) circuit.beginProbe(attempt, now);
    // The result of a probe decides whether later calls are made, so a probe waits until its deadline.
    return probed.length > 0 ? await attempt : await this.#waitWhileClosed(attempt, identities);
  }

  /** Makes a call and records its outcome. */
  async #attempt<Result>(
    call: () => Promise<Result>,
    identities: readonly string[],
    tickets: ReadonlyMap<Circuit, Ticket>,
  ): Promise<Result> {
    try {
      const result = await call();
      this.#recordSuccess(identities);
      return result;
    } catch (error) {
      const wasBusy = error instanceof StoreError && error.wasBusy;
      if (!wasBusy) this.#recordFailure(identities, tickets, error);
      throw error;
    }
  }

  /**
   * Waits for a call until it ends or a circuit opens. The call then continues, and its outcome is still
   * recorded.
   */
  async #waitWhileClosed<Result>(
    attempt: Promise<Result>,
    identities: readonly string[],
  ): Promise<Result> {
    const { promise: opened, reject } = Promise.withResolvers<never>();
    const timer = setInterval(() => {
      const open = this.#circuitsOf(identities).find(({ isOpen }) => isOpen);
      if (open) reject(new StoreError("abandoned", `no longer awaited ${open.reason}`));
    }, this.#stepMs);
    try {
      return await Promise.race([attempt, opened]);
    } finally {
      clearInterval(timer);
    }
  }

  /** Returns the circuit of the store, and the circuits of the call's objects that have failed. */
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

/** The distinct identities of a call. A client's shards count as one identity. */
function identitiesOf(counters: readonly Counter[]): string[] {
  return [...new Set(counters.map(({ identity, shard }) => shard?.client ?? identity))];
}

function circuitOpen({ reason }: Circuit): StoreError {
  return new StoreError("circuit-open", `not called ${reason}`);
}

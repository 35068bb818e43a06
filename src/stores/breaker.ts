import type { Counter } from "../engine/counter.ts";
import { Circuit } from "./circuit.ts";
import { isShadow } from "./shadow-groups.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";
import { type WaitingCall, WaitingCalls } from "./waiting-calls.ts";

/** Whether a store is called (`closed`), or left alone but for a probe now and then (`open`). */
export type BreakerState = "closed" | "open";

/** What a state is about: the whole store, or one object of it. */
export type BreakerScope = "store" | "object";

export interface BreakerOptions {
  /** A probe that has not ended after this long is taken for lost, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * How many clients' objects must have failed, for the whole store to be left alone. Where each client
   * has an object of its own, one of them alone can bring its object down, and must not take the others
   * with it. Default: 1, which means a store that is not made of objects.
   */
  readonly clients?: number;
  /** Called with each change. */
  readonly onChange?: (state: BreakerState, scope: BreakerScope) => void;
  readonly clock?: () => number;
}

/** Objects whose failures are counted at most: those that failed last. */
const MAX_OBJECTS = 256;

/** How often a call under way looks whether to wait on: this many times within its deadline. */
const LOOKS = 10;

/**
 * A circuit breaker: a store that failed a few times in a row is not called for a while, so that an
 * outage delays no more than those few requests, and does not keep a struggling store from recovering.
 *
 * While it is open, calls fail at once with `circuit-open`, and so do those that were under way; what they
 * sent goes on without them. After a rest one call goes through as a probe: its success closes the
 * breaker, its failure lets the store rest again.
 *
 * Of a store made of objects, each that fails has a circuit of its own. A failed call is attributed to
 * one of its objects: the one that has failed most often in a row. So one broken object that all calls
 * share rests alone, and neither it nor the shards of one client look like an outage.
 */
export function withBreaker(
  store: Store,
  { timeoutMs, clients = 1, onChange = () => {}, clock = Date.now }: BreakerOptions,
): Store {
  const whole = new Circuit(timeoutMs);
  /** Of objects that failed since their last success. */
  const objects = new Map<string, Circuit>();
  /** The objects that the failures of the whole store were attributed to: no more than are needed. */
  const culprits = new Set<string>();
  const waiting = new WaitingCalls(timeoutMs, clients);

  function succeeded(places: readonly string[]): void {
    if (whole.succeed()) onChange("closed", "store");
    culprits.clear();
    if (objects.size === 0) return;
    for (const place of places) {
      if (objects.get(place)?.succeed()) onChange("closed", "object");
      objects.delete(place);
    }
  }

  /** Keeps an object's circuit, as the last to be dropped. */
  function keep(place: string, circuit: Circuit): Circuit {
    objects.delete(place);
    objects.set(place, circuit);
    if (objects.size > MAX_OBJECTS) objects.delete(objects.keys().next().value as string);
    return circuit;
  }

  /** The circuits that a call goes through. */
  function circuitsOf(places: readonly string[]): Circuit[] {
    if (objects.size === 0) return [whole];
    const own = places.flatMap((place) => {
      const circuit = objects.get(place);
      return circuit ? keep(place, circuit) : [];
    });
    return [whole, ...own];
  }

  /** Counts a failure for each of a call's objects. @returns the one that it is attributed to */
  function blame(
    places: readonly string[],
    tickets: ReadonlyMap<Circuit, number>,
    failure: string,
  ): string {
    let [culprit = "", most] = [places[0], 0];
    const circuits = places.map((place) => {
      return [place, keep(place, objects.get(place) ?? new Circuit(timeoutMs))] as const;
    });
    for (const [place, { failures }] of circuits) {
      if (failures > most) [culprit, most] = [place, failures];
    }
    for (const [place, circuit] of circuits) {
      const ticket = tickets.get(circuit) ?? 0;
      const opens = circuit.fail(ticket, clock(), failure, place === culprit);
      if (opens) onChange("open", "object");
    }
    return culprit;
  }

  function failed(
    places: readonly string[],
    tickets: ReadonlyMap<Circuit, number>,
    error: unknown,
  ): void {
    const failure = error instanceof StoreError ? error.failure : "internal";
    const culprit = clients > 1 ? blame(places, tickets, failure) : "";
    if (culprits.size < clients) culprits.add(culprit);
    const mayOpen = culprits.size >= clients;
    const opens = whole.fail(tickets.get(whole) ?? 0, clock(), failure, mayOpen);
    if (opens) onChange("open", "store");
  }

  async function through<Result>(
    counters: readonly Counter[],
    call: () => Promise<Result>,
  ): Promise<Result> {
    const now = clock();
    const places = clients > 1 ? placesOf(counters) : [];
    if (clients > 1 && places.length === 0) {
      // Give-backs alone, which no answer is awaited of: their success shows nothing.
      if (whole.isOpen) throw new StoreError("circuit-open", whole.reason);
      return await call();
    }
    const circuits = circuitsOf(places);
    const resting = circuits.find((circuit) => circuit.isResting(now));
    if (resting) throw new StoreError("circuit-open", resting.reason);
    if (!whole.isOpen && waiting.isStalled(places, now)) throw stalled();
    const tickets = new Map(circuits.map((circuit) => [circuit, circuit.enter(now)]));
    const own = waiting.enter(places, now);
    const attempt = (async () => {
      try {
        const result = await call();
        waiting.succeed(own, clock());
        succeeded(places);
        return result;
      } catch (error) {
        waiting.leave(own);
        failed(places, tickets, error);
        throw error;
      }
    })();
    // A probe is what the others go by: it waits for its whole deadline.
    const isProbe = [...tickets.values()].some((ticket) => ticket > 0);
    return isProbe ? await attempt : await orGivenUp(attempt, own);
  }

  /** Waits on only while there is hope. What was sent goes on, and what comes of it is taken in. */
  async function orGivenUp<Result>(attempt: Promise<Result>, own: WaitingCall): Promise<Result> {
    const { promise: givenUp, reject } = Promise.withResolvers<never>();
    const timer = setInterval(() => {
      const reason = circuitsOf(own.places).find(({ isOpen }) => isOpen)?.reason;
      if (reason) reject(new StoreError("circuit-open", reason));
      else if (waiting.isStalled(own.places, clock(), own)) reject(stalled());
    }, timeoutMs / LOOKS);
    try {
      return await Promise.race([attempt, givenUp]);
    } finally {
      clearInterval(timer);
    }
  }

  return {
    decide: (groups, now, unused) =>
      through(needed(groups), () => store.decide(groups, now, unused)),
    adjust: (counters, now) => through(counters, () => store.adjust(counters, now)),
    reset: (counters, now) => through(counters, () => store.reset(counters, now)),
  };
}

/** The counters without which a call decides nothing: those of enforced rules, if there are any. */
function needed(groups: readonly (readonly Counter[])[]): Counter[] {
  const enforced = groups.filter((group) => !isShadow(group));
  return (enforced.length > 0 ? enforced : groups).flat();
}

function stalled(): StoreError {
  return new StoreError("circuit-open", "too many calls wait for an answer, and none comes");
}

/** The objects that a call is about, each once. The shards of one client are one: `identity#n`. */
function placesOf(counters: readonly Counter[]): string[] {
  return [...new Set(counters.map(({ identity }) => identity.split("#", 1)[0] as string))];
}

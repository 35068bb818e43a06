import { waitUntil } from "cloudflare:workers";
import type { Adjustment, Removal, Tally, UnusedQuota } from "../../engine/counter.ts";
import { NOTHING } from "../batch.ts";
import type { MakeCall, MeasureCall } from "../calls.ts";
import { type Answer, type Group, type Store, StoreError } from "../store.ts";
import type { CounterObject } from "./counter-object.ts";
import { ObjectCalls, type ObjectOf, partsOf } from "./object-calls.ts";
import { DecisionCalls, DecisionDeadline, decideAcross } from "./two-phase.ts";

export interface DurableObjectOptions {
  readonly namespace: DurableObjectNamespace<CounterObject>;
  /** The start of each object's name, so that several Weirs can share a namespace. */
  readonly prefix: string;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Keeps the Worker alive until a task has ended.
   *
   * @default waitUntil
   */
  readonly background?: (task: Promise<unknown>) => void;
  /**
   * Makes each call to an object, and each decision with several objects.
   *
   * @default calls without a deadline and without a breaker
   */
  readonly makeCall?: MakeCall;
  /** Measures each call to an object. @default nothing is measured */
  readonly measure?: MeasureCall;
}

/**
 * Creates a store that keeps its counters in Durable Objects, with one object for each identity. Groups that need
 * only the same object share a call. Each other group has its own calls, so that an object that fails or is slow
 * affects only its own groups. two-phase.ts decides groups with several objects.
 */
export function createDurableObjectStore(options: DurableObjectOptions): Store {
  const { namespace, prefix, measure } = options;
  return new ObjectStore(options, (identity) => {
    const object = namespace.getByName(`${prefix}:${identity}`);
    return measure ? measured(object, measure) : object;
  });
}

/** Returns an object whose calls are measured. */
function measured(
  object: DurableObjectStub<CounterObject>,
  measure: MeasureCall,
): DurableObjectStub<CounterObject> {
  type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;
  return new Proxy(object, {
    get: (target, name: string) => {
      const methods = target as unknown as Methods;
      // The methods are called on the object, because a method of a stub has no `apply`.
      return (...args: unknown[]) => measure(async () => methods[name]?.(...args));
    },
  });
}

class ObjectStore implements Store {
  readonly #objectOf: ObjectOf;
  readonly #timeoutMs: number;
  readonly #background: (task: Promise<unknown>) => void;
  readonly #call: MakeCall;
  readonly #calls: ObjectCalls;

  constructor(options: DurableObjectOptions, objectOf: ObjectOf) {
    const { timeoutMs, background = waitUntil, makeCall = (_, call) => call() } = options;
    this.#objectOf = objectOf;
    this.#timeoutMs = timeoutMs;
    this.#background = background;
    this.#call = (counters, call) => makeCall(counters, () => call().catch(throwStoreError));
    this.#calls = new ObjectCalls(objectOf, timeoutMs, background);
  }

  decide(
    groups: readonly Group[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Answer>[] {
    const deadline = new DecisionDeadline(this.#timeoutMs);
    const answers: Promise<Answer>[] = [];
    /** Maps an object's identity to the indices of the groups that share a call to this object. */
    const shared = new Map<string, number[]>();
    for (const [index, group] of groups.entries()) {
      const identity = onlyObjectOf(group);
      if (identity === undefined) continue;
      const indices = shared.get(identity);
      if (indices) indices.push(index);
      else shared.set(identity, [index]);
    }
    this.#returnUnused(
      unused.filter(({ counter }) => !shared.has(counter.identity)),
      now,
    );
    for (const [identity, indices] of shared) {
      const own = indices.map((index) => groups[index] as Group);
      const returns = unused.filter(({ counter }) => counter.identity === identity);
      const decided = this.#call(own.flat(), () => this.#calls.decide(identity, own, now, returns));
      for (const [at, index] of indices.entries()) {
        answers[index] = decided.then((all) => all[at] as Answer);
      }
    }
    for (const [index, group] of groups.entries()) {
      answers[index] ??= this.#call(group, () => {
        const calls = new DecisionCalls(this.#objectOf, this.#calls, now);
        return decideAcross(calls, partsOf(group), deadline, this.#background);
      });
    }
    return answers;
  }

  async adjust(
    counters: readonly Adjustment[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<readonly Tally[]> {
    const tallies: Tally[] = [];
    if (counters.length === 0) {
      const returned = unused.map(({ counter }) => counter);
      await this.#call(returned, () => Promise.all(unused.map((each) => this.#return(each, now))));
      return tallies;
    }
    await this.#call(counters, async () => {
      const parts = partsOf(counters);
      const isAdjusted = ({ counter }: UnusedQuota) =>
        parts.some(({ identity }) => identity === counter.identity);
      this.#returnUnused(
        unused.filter((each) => !isAdjusted(each)),
        now,
      );
      const calls = parts.map(async ({ identity, counters: adjusted, positions }) => {
        const returns = unused.filter(({ counter }) => counter.identity === identity);
        const entry = { ...NOTHING, now, unused: returns, adjusted };
        const answer = await this.#calls.run(identity, [entry])[0];
        const states = answer?.adjusted as readonly Tally[];
        for (const [index, tally] of states.entries()) tallies[positions[index] as number] = tally;
      });
      await Promise.all(calls);
    });
    return tallies;
  }

  async reset(counters: readonly Removal[], now?: number): Promise<void> {
    await this.#call(counters, () => {
      const calls = partsOf(counters).map(({ identity, counters: removed }) =>
        this.#calls.run(identity, [{ ...NOTHING, now, removed }]),
      );
      return Promise.all(calls.flat());
    });
  }

  async #return(unused: UnusedQuota, now: number | undefined): Promise<void> {
    await this.#calls.run(unused.counter.identity, [{ ...NOTHING, now, unused: [unused] }])[0];
  }

  /** Returns unused quota, each time in the next call to its object. If a call fails, the quota stays charged. */
  #returnUnused(unused: readonly UnusedQuota[], now: number | undefined): void {
    for (const each of unused) this.#background(this.#return(each, now).catch(() => {}));
  }
}

/** Returns the identity of the object in which all counters are stored; undefined if there are several. */
function onlyObjectOf(group: Group): string | undefined {
  const identity = group[0]?.identity;
  return group.every((counter) => counter.identity === identity) ? identity : undefined;
}

/**
 * Converts an error of a call into a `StoreError`. Leaves out the message of an object's error, because it may
 * contain keys.
 */
function throwStoreError(error: unknown): never {
  if (error instanceof StoreError) throw error;
  const isOverloaded = (error as { overloaded?: unknown } | undefined)?.overloaded === true;
  throw isOverloaded
    ? new StoreError("error-reply", "a Durable Object is overloaded")
    : new StoreError("unreachable", "a Durable Object did not answer");
}

import type { Counter, Demand, UnusedQuota } from "../../engine/counter.ts";
import {
  answersOf,
  Batches,
  decideEntries,
  type Entry,
  type EntryAnswer,
  type Part,
} from "../batch.ts";
import { type Answer, type Group, StoreError } from "../store.ts";
import type { CounterObject, EntryResult, TimedVerdict } from "./counter-object.ts";

/** Returns the object that stores an identity's counters. */
export type ObjectOf = (identity: string) => DurableObjectStub<CounterObject>;

/** The counters of a group that are stored in one object. */
export interface ObjectPart<Each extends Counter = Demand> {
  readonly identity: string;
  readonly reach: number;
  readonly counters: Each[];
  /** The index of each counter in the group. */
  readonly positions: number[];
}

/**
 * Splits a group into one part for each object. The client's own objects come first, and the objects that most
 * clients share come last. So a client that exceeds its own limit is denied before it takes shared quota, even for
 * a moment.
 *
 * An identity always has the same reach, so all decisions call objects in the same order. So of two decisions that
 * need the last quota of the same objects, the one that gets it in the first object is not denied by the other one.
 */
export function partsOf<Each extends Counter>(group: readonly Each[]): ObjectPart<Each>[] {
  const parts = new Map<string, ObjectPart<Each>>();
  for (const [position, counter] of group.entries()) {
    const { identity, reach = 0 } = counter;
    const part = parts.get(identity) ?? { identity, reach, counters: [], positions: [] };
    parts.set(identity, part);
    part.counters.push(counter);
    part.positions.push(position);
  }
  return [...parts.values()].sort(
    (a, b) => a.reach - b.reach || (a.identity < b.identity ? -1 : 1),
  );
}

/**
 * The maximum number of calls to an object with the same counter. In the object of a shared counter, one client's
 * request should not wait for another's. Unlike a command of Redis, a further call is not dearer than a longer one.
 */
const MAX_CALLS_OF_COUNTER = 4;

/** The maximum number of objects with a remembered batch. */
const MAX_OBJECTS = 4096;

/**
 * The calls to objects. While the maximum number of calls to an object is in flight, new entries for the object wait
 * for the next call, which carries all of them.
 */
export class ObjectCalls {
  readonly #objectOf: ObjectOf;
  readonly #timeoutMs: number;
  readonly #background: (task: Promise<unknown>) => void;
  /** The batches of each object with calls in flight. */
  readonly #batches = new Map<string, Batches>();

  constructor(objectOf: ObjectOf, timeoutMs: number, background: (task: Promise<unknown>) => void) {
    this.#objectOf = objectOf;
    this.#timeoutMs = timeoutMs;
    this.#background = background;
  }

  /** Carries out the entries of one request in an object. @returns an answer for each entry */
  run(identity: string, entries: readonly Entry[]): Promise<EntryAnswer>[] {
    const batches = this.#batchesOf(identity);
    return batches.run(entries).map(async (answered) => {
      try {
        return await answered;
      } finally {
        this.#forgetIfIdle(identity, batches);
      }
    });
  }

  /** Decides groups, or parts of groups, whose counters are all in one object. */
  decide(
    identity: string,
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
  ): Promise<Answer[]> {
    return Promise.all(
      decideEntries(groups, now, unused, (entries) => this.run(identity, entries)),
    );
  }

  #forgetIfIdle(identity: string, batches: Batches): void {
    if (batches.isIdle && this.#batches.get(identity) === batches) this.#batches.delete(identity);
  }

  #batchesOf(identity: string): Batches {
    const existing = this.#batches.get(identity);
    if (existing) return existing;
    const run = (entries: readonly Entry[]) => this.#run(this.#objectOf(identity), entries);
    const options = {
      timeoutMs: this.#timeoutMs,
      keepAlive: this.#background,
      maxCallsOfCounter: MAX_CALLS_OF_COUNTER,
    };
    const batches = new Batches({ run }, options);
    // The call of a killed invocation never ends, so the map could grow. If the oldest entry is removed, later
    // calls to its object only leave sooner.
    const [oldest] = this.#batches.keys();
    if (oldest !== undefined && this.#batches.size >= MAX_OBJECTS) this.#batches.delete(oldest);
    this.#batches.set(identity, batches);
    return batches;
  }

  async #run(
    object: DurableObjectStub<CounterObject>,
    entries: readonly Entry[],
  ): Promise<EntryAnswer[][]> {
    const results = await object.run(entries);
    return entries.map((entry, index) => entryAnswersOf(entry, results?.[index]));
  }
}

/** Returns the error for an answer of an object without the expected form. */
export function invalidReply(): StoreError {
  return new StoreError(
    "invalid-reply",
    "the answer of a Durable Object does not have the expected form",
  );
}

/**
 * @throws {StoreError} ("invalid-reply") unless the object's result has an answer for each request of the entry, and
 * one tally for each counter
 */
function entryAnswersOf(entry: Entry, result: Partial<EntryResult> | undefined): EntryAnswer[] {
  const { adjusted, group, times } = entry;
  const { parts, tallies } = result ?? {};
  if (!Array.isArray(parts) || tallies?.length !== adjusted.length) throw invalidReply();
  if (!group) return [{ adjusted: tallies }];
  for (const { answer } of parts as readonly Part<Partial<TimedVerdict>>[]) {
    const isWhole = answer?.tallies?.length === group.length;
    if (answer?.now === undefined || answer.admitted === undefined || !isWhole)
      throw invalidReply();
  }
  const answers = answersOf(group, parts as readonly Part<TimedVerdict>[]);
  if (answers.length !== times) throw invalidReply();
  return answers.map((decided) => ({ decided }));
}

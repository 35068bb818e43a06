import type { Counter, Demand, UnusedQuota } from "../../engine/counter.ts";
import {
  answersOf,
  Batches,
  decideEntries,
  type Entry,
  type EntryAnswer,
  NOTHING,
  type Part,
} from "../batch.ts";
import { type Answer, type Group, StoreError } from "../store.ts";
import type { CounterObject, TimedVerdict } from "./counter-object.ts";

/** The deadline of a decision, which begins now. */
export class DecisionDeadline {
  readonly #startedAt = Date.now();
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Milliseconds left; 0 or less after the deadline. The clock may step back. */
  get timeLeftMs(): number {
    return Math.min(this.#timeoutMs, this.#timeoutMs - (Date.now() - this.#startedAt));
  }

  /**
   * How long, in milliseconds, a call waits for holds to release quota, and a denied decision for the release of its
   * holds: at most a quarter of the time left, so that a denial arrives well within the deadline.
   */
  get maxWaitMs(): number {
    return Math.max(0, Math.floor(this.timeLeftMs / 4));
  }
}

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
 * An identity always has the same reach, so all decisions call objects in the same order. A decision that waits for
 * an object has holds only in earlier objects. So no two decisions wait for each other.
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

/** The maximum number of objects with a remembered batch. */
const MAX_OBJECTS = 4096;

/** The error of a group that must wait for open holds. */
const MUST_WAIT = new StoreError("timeout", "an open hold has the quota");

/**
 * Decides groups, or parts of groups, whose counters are all in one object. While the maximum number of calls to an
 * object is in flight, new groups for the object wait for the next call, which carries all of them. A group that must
 * wait for a hold is sent in a separate call, so that no other group waits for the hold.
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

  /** @param hold the id of a final hold for the charges: see `CounterObject.decide` */
  async decideInObject(
    identity: string,
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    deadline: DecisionDeadline,
    hold?: string,
  ): Promise<Answer[]> {
    const batches = this.#batchesOf(identity);
    const decided = decideEntries(groups, now, unused, (entries) =>
      batches.run(hold === undefined ? entries : entries.map((entry) => ({ ...entry, hold }))),
    );
    const results = await Promise.allSettled(decided);
    this.#forgetIfIdle(identity, batches);
    const failures = results.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    const failure = failures.find((reason) => reason !== MUST_WAIT);
    if (failure !== undefined) throw failure;
    const waiting = groups.filter((_, index) => results[index]?.status === "rejected");
    const late =
      waiting.length > 0
        ? await this.#objectOf(identity).decide(waiting, now, deadline.maxWaitMs, [], hold)
        : [];
    if (!Array.isArray(late)) throw invalidReply();
    const lateVerdicts = late.values();
    return results.map((result, index) =>
      result.status === "fulfilled"
        ? result.value
        : answerOf(lateVerdicts.next().value, groups[index] as Group),
    );
  }

  /** Returns unused quota to its object. */
  async returnInObject(unused: UnusedQuota, now: number | undefined): Promise<void> {
    const { identity } = unused.counter;
    const batches = this.#batchesOf(identity);
    try {
      await batches.run([{ ...NOTHING, now, unused: [unused] }])[0];
    } finally {
      this.#forgetIfIdle(identity, batches);
    }
  }

  #forgetIfIdle(identity: string, batches: Batches): void {
    if (batches.isIdle && this.#batches.get(identity) === batches) this.#batches.delete(identity);
  }

  #batchesOf(identity: string): Batches {
    const existing = this.#batches.get(identity);
    if (existing) return existing;
    const run = (entries: readonly Entry[]) => this.#run(this.#objectOf(identity), entries);
    const options = { timeoutMs: this.#timeoutMs, keepAlive: this.#background };
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
    const maxWaitMs = this.#timeoutMs / 4;
    const decided = await object.run(entries, maxWaitMs);
    return entries.map(({ group, times }, index) => {
      if (!group) return [{}];
      const parts = decided?.[index];
      if (!Array.isArray(parts)) throw invalidReply();
      const answers = answersOf(
        group,
        parts.map((part) => openPartOf(part, group)),
      );
      if (answers.length !== times) throw invalidReply();
      return answers.map((each) => ({ decided: each }));
    });
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
 * @throws {StoreError} ("invalid-reply") unless the object's answer has one tally for each counter of the group
 */
export function answerOf(verdict: TimedVerdict | undefined, group: Group): Answer {
  const { now, admitted, tallies, skipCache } = verdict ?? ({} as Partial<TimedVerdict>);
  const isWhole = tallies?.length === group.length;
  if (now === undefined || admitted === undefined || !isWhole) throw invalidReply();
  if (!skipCache) return { now, admitted, tallies };
  return { now, admitted, tallies: tallies.map((tally) => ({ ...tally, isUncertain: true })) };
}

function openPartOf({ requests, answer }: Part<TimedVerdict | undefined>, group: Group): Part {
  return { requests, answer: answer ? answerOf(answer, group) : MUST_WAIT };
}

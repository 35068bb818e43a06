import {
  type Adjustment,
  counterId,
  type Demand,
  type Removal,
  type Tally,
  type UnusedQuota,
} from "../engine/counter.ts";
import { sharedPromise } from "../request/shared-promise.ts";
import { Deadline, timedOut } from "./deadline.ts";
import { type Answer, type Group, type Store, StoreError } from "./store.ts";

/** A part of a call, independent of the other parts. Its fields are carried out in their order. */
export interface Entry {
  /** The time that determines the windows; undefined for the store's clock. */
  readonly now: number | undefined;
  /** Quota to return. A failure is ignored, and the quota then stays charged. */
  readonly unused: readonly UnusedQuota[];
  /** Counters to which the store adds their cost, even if no quota is left. */
  readonly adjusted: readonly Adjustment[];
  /** Counters to remove: see `Store.reset`. */
  readonly removed: readonly Removal[];
  /** The group to decide; undefined if there is none. */
  readonly group?: Group;
  /** The number of equal requests for the group. The store admits the first ones, up to the quota. */
  readonly times: number;
  /**
   * Whether the charge can be released later, by the id of a hold. A hold is final if no other object must decide. Only
   * for stores that have holds: see `Holds`.
   */
  readonly hold?: { readonly id: string; readonly isFinal: boolean };
}

/** The results for one request of an entry. */
export interface EntryAnswer {
  /** The answer for the group; undefined if the entry has none. */
  readonly decided?: Answer | StoreError;
  /** The new states of the adjusted counters; undefined if there are none. */
  readonly adjusted?: readonly Tally[] | StoreError;
  /** Set if the counters could not be removed. */
  readonly failed?: StoreError;
}

/** A store that carries out many entries in one call. */
export interface EntryStore {
  /**
   * Carries out entries, in their order. An entry never depends on another one.
   *
   * @returns for each entry, one answer for each of its requests, in their order
   * @throws {StoreError} if the call failed as a whole. The failed call may still have charged counters
   */
  run(entries: readonly Entry[]): Promise<readonly (readonly EntryAnswer[])[]>;
}

export interface BatchOptions {
  /** The deadline of a decision in milliseconds, from its arrival. */
  readonly timeoutMs: number;
  /** Lets a call run to its end although the request that sends it has ended. */
  readonly keepAlive: (task: Promise<unknown>) => void;
  /** The maximum number of calls in flight. @default 8 */
  readonly maxCalls?: number;
  /** The maximum number of these that charge the same counter. @default 1 */
  readonly maxCallsOfCounter?: number;
}

/**
 * The maximum number of calls that an isolate has in flight. With 12, new clients wait a little less, but each call
 * costs a command: `npm run bench -- --workload cold,zipf-1k --connections 16,64` measures both.
 */
const MAX_CALLS = 8;

/** The maximum size of a call, so that the call takes about 1 ms in Redis and has about 200 KB. */
const MAX_ENTRIES = 256;
const MAX_COUNTERS = 1024;

/** The part of the deadline after which a batch is sent even if the maximum number of calls is in flight. */
const MAX_DELAY_SHARE = 0.25;

/**
 * Turns a store of entries into a store whose calls are batched. An entry goes at once while a call is free. While the
 * maximum number of calls is in flight, or of those that charge one of its counters, it waits. The next call carries
 * all entries that may leave. So a client's burst takes a few calls, and clients do not wait for each other. Equal
 * requests are one entry, whatever their number.
 *
 * Each request waits for its own answer until its own deadline. A request that opened one of a call's entries sends
 * the call, and stays alive until the answer. If its invocation is killed, another request of the call sends it.
 */
export function withBatches(store: EntryStore, options: BatchOptions): Store {
  const batches = new Batches(store, options);
  return {
    decide: (groups, now, unused = []) =>
      decideEntries(groups, now, unused, (entries) => batches.run(entries)),

    async adjust(counters, now, unused = []) {
      const answer = await batches.run([{ ...NOTHING, now, unused, adjusted: counters }])[0];
      if (answer?.adjusted instanceof StoreError) throw answer.adjusted;
      return answer?.adjusted ?? [];
    },

    async reset(counters, now) {
      const answer = await batches.run([{ ...NOTHING, now, removed: counters }])[0];
      if (answer?.failed) throw answer.failed;
    },
  };
}

/** The fields of an entry that does nothing. */
export const NOTHING = { unused: [], adjusted: [], removed: [], times: 1 } as const;

/** Sends each group as an entry. The first entry also returns the unused quota. */
export function decideEntries(
  groups: readonly Group[],
  now: number | undefined,
  unused: readonly UnusedQuota[],
  run: (entries: readonly Entry[]) => readonly Promise<EntryAnswer>[],
): Promise<Answer>[] {
  const entries: Entry[] = groups.map((group) => ({ ...NOTHING, now, group }));
  if (unused.length > 0) entries[0] = { ...(entries[0] ?? { ...NOTHING, now }), unused };
  const answers = run(entries).map(async (answer) => {
    const { decided } = await answer;
    if (decided instanceof StoreError) throw decided;
    return decided as Answer;
  });
  // Without groups, no other code handles a failure.
  if (groups.length === 0) answers[0]?.catch(() => {});
  return answers.slice(0, groups.length);
}

/** The answer for successive requests of an entry that a store has admitted together, or denied together. */
export interface Part<Result = Answer | StoreError> {
  readonly requests: number;
  /** If several requests were admitted, the counts include all of their charges. */
  readonly answer: Result;
}

/**
 * Returns the answer for each request. If several requests were charged together, each answer has the count after
 * its own charge.
 */
export function answersOf<Result extends object>(
  counters: Group,
  parts: readonly Part<Result>[],
): Result[] {
  return parts.flatMap(({ requests, answer }) => {
    const { admitted, tallies } = answer as Partial<Answer>;
    return Array.from({ length: requests }, (_, index) => {
      const later = requests - 1 - index;
      if (!admitted || later === 0) return answer;
      const own = tallies?.map((tally, at) => {
        const { cost, checkOnly } = counters[at] as Demand;
        return tally && !checkOnly
          ? { ...tally, count: Math.max(0, tally.count - later * cost) }
          : tally;
      });
      return { ...answer, tallies: own };
    });
  });
}

/** A request that waits for the answer to its entry. */
interface Waiter {
  readonly resolve: (answer: EntryAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** An entry, and the equal requests that asked for it. */
class Pending {
  readonly openedAt = Date.now();
  readonly counters: readonly string[];
  readonly waiters: Waiter[] = [];
  /** Set when the entry has left the queue. */
  call: Call | undefined;
  readonly #left = sharedPromise<void>();
  entry: Entry;

  constructor(entry: Entry) {
    this.entry = entry;
    // A return or a charge after a response delays no decision.
    this.counters = entry.group?.map(counterId) ?? [];
  }

  /** Resolves when `call` is set. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  leaveWith(call: Call): void {
    this.call = call;
    this.#left.resolve();
  }

  /** Adds a request. The last one determines the entry's time. */
  add({ now = 0 }: Entry, waiter: Waiter): void {
    const times = this.waiters.push(waiter);
    const { entry } = this;
    const isLater = entry.now !== undefined && now > entry.now;
    this.entry = { ...entry, times, now: isLater ? now : entry.now };
  }
}

interface Call {
  readonly pending: readonly Pending[];
  readonly counters: ReadonlySet<string>;
  readonly leftAt: number;
  isSent: boolean;
}

/** The calls of an isolate to a store of entries: see {@link withBatches}. */
export class Batches {
  readonly #store: EntryStore;
  readonly #timeoutMs: number;
  readonly #keepAlive: BatchOptions["keepAlive"];
  readonly #maxCalls: number;
  readonly #maxCallsOfCounter: number;
  /** The entries that wait for a call, the oldest first. */
  readonly #queue = new Set<Pending>();
  /** The entries of the queue, by their {@link mergeKeyOf}. */
  readonly #mergeable = new Map<string, Pending[]>();
  readonly #inFlight = new Set<Call>();

  constructor(store: EntryStore, options: BatchOptions) {
    const { timeoutMs, keepAlive, maxCalls = MAX_CALLS, maxCallsOfCounter = 1 } = options;
    this.#store = store;
    this.#timeoutMs = timeoutMs;
    this.#keepAlive = keepAlive;
    this.#maxCalls = maxCalls;
    this.#maxCallsOfCounter = maxCallsOfCounter;
  }

  /** Whether no call is in flight or waits. */
  get isIdle(): boolean {
    return this.#inFlight.size === 0 && this.#queue.size === 0;
  }

  /**
   * @returns a promise for each entry, which may be answered by different calls. It rejects with a {@link StoreError}
   * ("timeout") at the deadline, or with the error of the call
   */
  run(entries: readonly Entry[]): Promise<EntryAnswer>[] {
    const answers = entries.map((entry) => this.#answerOf(entry));
    this.#release();
    return answers;
  }

  async #answerOf(entry: Entry): Promise<EntryAnswer> {
    const { promise, resolve, reject } = sharedPromise<EntryAnswer>();
    const pending = this.#join(entry, { resolve, reject });
    const deadline = new Deadline(
      this.#timeoutMs,
      (wasBusy) => reject(timedOut(this.#timeoutMs, wasBusy)),
      () => this.#sendIfLate(pending),
    );
    try {
      return await promise;
    } finally {
      deadline.clear();
    }
  }

  #join(entry: Entry, waiter: Waiter): Pending {
    const key = mergeKeyOf(entry);
    const others = (key !== undefined && this.#mergeable.get(key)) || [];
    const equal = others.find((each) => isEqual(each.entry, entry));
    const pending = equal ?? new Pending(entry);
    pending.add(entry, waiter);
    if (equal) return equal;
    this.#queue.add(pending);
    if (key !== undefined) this.#mergeable.set(key, [...others, pending]);
    this.#keepAlive(pending.left.then(() => this.#send(pending)));
    return pending;
  }

  /** Lets entries leave the queue as long as calls are free. Nobody overtakes an entry with the same counter. */
  #release(): void {
    // The call of a killed invocation never ends, so it is removed after a time.
    const lostBefore = Date.now() - 3 * this.#timeoutMs;
    for (const call of this.#inFlight) if (call.leftAt < lostBefore) this.#inFlight.delete(call);
    while (this.#queue.size > 0 && this.#inFlight.size < this.#maxCalls) {
      const waiting = new Set<string>();
      const hasLeft = this.#openCall(({ counters }) => {
        const mayLeave = !counters.some((id) => waiting.has(id) || this.#isBusy(id));
        if (!mayLeave) for (const id of counters) waiting.add(id);
        return mayLeave;
      });
      if (!hasLeft) return;
    }
  }

  /** Whether as many calls charge a counter as may do so. */
  #isBusy(id: string): boolean {
    let calls = 0;
    for (const { counters } of this.#inFlight) if (counters.has(id)) calls += 1;
    return calls >= this.#maxCallsOfCounter;
  }

  /** Moves entries from the queue to a new call, up to its size. @returns false if no entry may leave */
  #openCall(mayLeave: (pending: Pending) => boolean): boolean {
    const pending: Pending[] = [];
    let size = 0;
    for (const each of this.#queue) {
      if (!mayLeave(each)) continue;
      size += sizeOf(each.entry);
      if (pending.length > 0 && size > MAX_COUNTERS) break;
      if (pending.push(each) === MAX_ENTRIES) break;
    }
    if (pending.length === 0) return false;
    const counters = new Set(pending.flatMap((each) => each.counters));
    const call: Call = { pending, counters, leftAt: Date.now(), isSent: false };
    this.#inFlight.add(call);
    for (const each of pending) {
      this.#queue.delete(each);
      this.#mergeable.delete(mergeKeyOf(each.entry) ?? "");
      each.leaveWith(call);
    }
    return true;
  }

  /** Sends an entry that has waited too long. The invocations that should send its call may have been killed. */
  #sendIfLate(pending: Pending): void {
    if (Date.now() - pending.openedAt < this.#timeoutMs * MAX_DELAY_SHARE) return;
    while (!pending.call) this.#openCall(() => true);
    this.#keepAlive(this.#send(pending));
  }

  /** Sends the call of an entry, unless another request of this call has sent it. Never rejects. */
  async #send({ call }: Pending): Promise<void> {
    if (!call || call.isSent) return;
    call.isSent = true;
    try {
      const answers = await this.#store.run(call.pending.map(({ entry }) => entry));
      for (const [index, { waiters }] of call.pending.entries()) {
        for (const [at, { resolve }] of waiters.entries())
          resolve(answers[index]?.[at] as EntryAnswer);
      }
    } catch (error) {
      for (const { waiters } of call.pending) for (const { reject } of waiters) reject(error);
    } finally {
      this.#inFlight.delete(call);
      this.#release();
    }
  }
}

function sizeOf({ unused, adjusted, removed, group = [] }: Entry): number {
  return unused.length + adjusted.length + removed.length + group.length;
}

/**
 * Returns a text that is equal for entries that may be merged; undefined if an entry must not be merged. A hold
 * and a slot belong to one request. A block is charged once. A refund asks for no quota.
 */
function mergeKeyOf(entry: Entry): string | undefined {
  const { group } = entry;
  if (!group || sizeOf(entry) > group.length || entry.hold !== undefined) return;
  if (group.some(({ block, slot, cost }) => (block ?? slot) !== undefined || cost < 0)) return;
  return group.map(({ key, cost }) => `${key} ${cost}`).join(" ");
}

function isEqual(one: Entry, other: Entry): boolean {
  const [group, others] = [one.group as Group, other.group as Group];
  if ((one.now === undefined) !== (other.now === undefined)) return false;
  if (Math.abs((one.now ?? 0) - (other.now ?? 0)) > MAX_MERGED_MS) return false;
  return (
    group.length === others.length &&
    group.every((counter, index) => isSameCounter(counter, others[index]))
  );
}

/** The maximum difference of the times of merged requests, in milliseconds. */
const MAX_MERGED_MS = 1000;

function isSameCounter(one: Demand, other: Demand | undefined): boolean {
  if (one === other) return true;
  if (!other) return false;
  const names = Object.keys(one) as (keyof Demand)[];
  // The key has the shard too.
  const isSame = (name: keyof Demand) => name === "shard" || one[name] === other[name];
  return names.length === Object.keys(other).length && names.every(isSame);
}

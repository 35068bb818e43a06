import type { Adjustment, Demand, Removal, Tally, UnusedQuota } from "../engine/counter.ts";
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
  /** The maximum number of calls in flight. @default 4 */
  readonly maxCalls?: number;
}

/** The maximum number of calls that an isolate has in flight. */
const MAX_CALLS = 4;

/** The maximum size of a call, so that the call takes about 1 ms in Redis and has about 200 KB. */
const MAX_ENTRIES = 256;
const MAX_COUNTERS = 1024;

/** The part of the deadline after which a batch is sent even if the maximum number of calls is in flight. */
const MAX_DELAY_SHARE = 0.25;

/**
 * Turns a store of entries into a store whose calls are batched. While the maximum number of calls is in flight,
 * new requests wait for the next call, which carries all of them. So a burst takes a few calls. Equal requests are
 * one entry, whatever their number.
 *
 * Each request waits for its own answer until its own deadline. The request that opens a batch sends the batch, and
 * stays alive until the answer. If its invocation is killed, another request of the batch sends the batch.
 */
export function withBatches(store: EntryStore, options: BatchOptions): Store {
  const batches = new Batches(store, options);
  return {
    decide: (groups, now, unused = []) =>
      decideEntries(groups, now, unused, (entries) => batches.run(entries)),

    async adjust(counters, now, unused = []) {
      const [answer] = await batches.run([{ ...NOTHING, now, unused, adjusted: counters }]);
      if (answer?.adjusted instanceof StoreError) throw answer.adjusted;
      return answer?.adjusted ?? [];
    },

    async reset(counters, now) {
      const [answer] = await batches.run([{ ...NOTHING, now, removed: counters }]);
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
  run: (entries: readonly Entry[]) => Promise<readonly EntryAnswer[]>,
): Promise<Answer>[] {
  const entries: Entry[] = groups.map((group) => ({ ...NOTHING, now, group }));
  if (unused.length > 0) entries[0] = { ...(entries[0] ?? { ...NOTHING, now }), unused };
  const answered = run(entries);
  // Without groups, no other code handles a failure.
  answered.catch(() => {});
  return groups.map(async (_, index) => {
    const { decided } = (await answered)[index] as EntryAnswer;
    if (decided instanceof StoreError) throw decided;
    return decided as Answer;
  });
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

/** A request that waits for the answers to its entries. */
interface Waiter {
  readonly answers: EntryAnswer[];
  readonly resolve: (answers: readonly EntryAnswer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** An entry of a batch, and the requests that asked for it. `place` is the index of the entry in a request. */
interface Pending {
  entry: Entry;
  readonly requests: { readonly waiter: Waiter; readonly place: number }[];
}

class Batch {
  readonly openedAt = Date.now();
  /** Resolves when the batch may be sent. */
  readonly left: Promise<void>;
  leave = () => {};
  readonly waiters = new Set<Waiter>();
  readonly pending: Pending[] = [];
  isSent = false;
  readonly #mergeable = new Map<string, Pending[]>();
  #counters = 0;

  constructor() {
    this.left = new Promise((resolve) => {
      this.leave = resolve;
    });
  }

  /** Adds a request. @returns false if the batch is full */
  add(entries: readonly Entry[], waiter: Waiter): boolean {
    const places = entries.map((entry, place) => {
      const key = mergeKeyOf(entry);
      const mergeable = key === undefined ? undefined : this.#mergeable.get(key);
      const equal = mergeable?.find((each) => isEqual(each.entry, entry));
      return { entry, place, key, equal };
    });
    const added = places.filter(({ equal }) => !equal);
    const counters = added.reduce((sum, { entry }) => sum + sizeOf(entry), 0);
    const isFull =
      this.pending.length + added.length > MAX_ENTRIES || this.#counters + counters > MAX_COUNTERS;
    if (isFull && added.length > 0 && this.pending.length > 0) return false;
    this.waiters.add(waiter);
    this.#counters += counters;
    for (const { entry, place, key, equal } of places) {
      if (equal) merge(equal, entry, { waiter, place });
      else {
        const pending = { entry, requests: [{ waiter, place }] };
        this.pending.push(pending);
        if (key !== undefined)
          this.#mergeable.set(key, [...(this.#mergeable.get(key) ?? []), pending]);
      }
    }
    return true;
  }
}

/** Adds a request to an entry. The last of the requests determines the entry's time. */
function merge(pending: Pending, { now = 0 }: Entry, request: Pending["requests"][number]): void {
  pending.requests.push(request);
  const { entry, requests } = pending;
  const isLater = entry.now !== undefined && now > entry.now;
  pending.entry = { ...entry, times: requests.length, now: isLater ? now : entry.now };
}

/** The calls of an isolate to a store of entries: see {@link withBatches}. */
export class Batches {
  readonly #store: EntryStore;
  readonly #timeoutMs: number;
  readonly #keepAlive: BatchOptions["keepAlive"];
  readonly #maxCalls: number;
  /** The batches that were not sent yet, the oldest first. */
  #queue: Batch[] = [];
  /** The calls in flight, with the time at which each was sent. */
  readonly #calls = new Map<Batch, number>();

  constructor(store: EntryStore, { timeoutMs, keepAlive, maxCalls = MAX_CALLS }: BatchOptions) {
    this.#store = store;
    this.#timeoutMs = timeoutMs;
    this.#keepAlive = keepAlive;
    this.#maxCalls = maxCalls;
  }

  /** Whether no call is in flight or waits. */
  get isIdle(): boolean {
    return this.#calls.size === 0 && this.#queue.length === 0;
  }

  /** @throws {StoreError} ("timeout") at the deadline, or the error of the call */
  async run(entries: readonly Entry[]): Promise<readonly EntryAnswer[]> {
    let deadline: Deadline | undefined;
    // `weir doctor` loads this file in Node 20, which has no Promise.withResolvers.
    const answered = new Promise<readonly EntryAnswer[]>((resolve, reject) => {
      const batch = this.#join(entries, { answers: [], resolve, reject });
      deadline = new Deadline(
        this.#timeoutMs,
        (wasBusy) => reject(timedOut(this.#timeoutMs, wasBusy)),
        () => this.#sendIfLate(batch),
      );
    });
    try {
      return await answered;
    } finally {
      deadline?.clear();
    }
  }

  #join(entries: readonly Entry[], waiter: Waiter): Batch {
    const last = this.#queue.at(-1);
    if (last?.add(entries, waiter)) return last;
    const batch = new Batch();
    batch.add(entries, waiter);
    if (this.#queue.length === 0 && this.#hasFreeCall()) {
      this.#keepAlive(this.#send(batch));
    } else {
      this.#queue.push(batch);
      this.#keepAlive(batch.left.then(() => this.#send(batch)));
      this.#releaseNext();
    }
    return batch;
  }

  /** Lets waiting batches be sent, up to the maximum number of calls. */
  #releaseNext(): void {
    while (this.#queue.length > 0 && this.#hasFreeCall()) {
      const batch = this.#queue.shift() as Batch;
      this.#calls.set(batch, Date.now());
      batch.leave();
    }
  }

  #hasFreeCall(): boolean {
    if (this.#calls.size < this.#maxCalls) return true;
    // The call of a killed invocation never ends, so it is removed after a time.
    const lostBefore = Date.now() - 3 * this.#timeoutMs;
    for (const [batch, sentAt] of this.#calls) if (sentAt < lostBefore) this.#calls.delete(batch);
    return this.#calls.size < this.#maxCalls;
  }

  /** Sends a batch that has waited too long. The invocation that opened the batch may have been killed. */
  #sendIfLate(batch: Batch): void {
    const isLate = Date.now() - batch.openedAt >= this.#timeoutMs * MAX_DELAY_SHARE;
    if (isLate && !batch.isSent) this.#keepAlive(this.#send(batch));
  }

  /** Never rejects. */
  async #send(batch: Batch): Promise<void> {
    if (batch.isSent) return;
    batch.isSent = true;
    this.#queue = this.#queue.filter((each) => each !== batch);
    this.#calls.set(batch, Date.now());
    try {
      const answers = await this.#store.run(batch.pending.map(({ entry }) => entry));
      for (const [index, { requests }] of batch.pending.entries()) {
        for (const [at, { waiter, place }] of requests.entries()) {
          waiter.answers[place] = answers[index]?.[at] as EntryAnswer;
        }
      }
      for (const { answers, resolve } of batch.waiters) resolve(answers);
    } catch (error) {
      for (const { reject } of batch.waiters) reject(error);
    } finally {
      this.#calls.delete(batch);
      this.#releaseNext();
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
  return (
    names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
  );
}

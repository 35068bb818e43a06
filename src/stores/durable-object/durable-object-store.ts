import { waitUntil } from "cloudflare:workers";
import {
  type Adjustment,
  type Demand,
  MAX_COUNT,
  type Removal,
  type Tally,
  type UnusedQuota,
} from "../../engine/counter.ts";
import type { MakeCall } from "../calls.ts";
import { inTime } from "../deadline.ts";
import { type Answer, type Group, isDependent, type Store, StoreError, skipped } from "../store.ts";
import type { CounterObject } from "./counter-object.ts";
import { DecisionDeadline, ObjectCalls, type ObjectOf } from "./object-calls.ts";
import {
  chooseShardsToAdjust,
  type ObjectPart,
  partsOf,
  ShardChoice,
  ShardUsage,
} from "./shards.ts";
import { DecisionCalls, decideAcross } from "./two-phase.ts";

export interface DurableObjectOptions {
  readonly namespace: DurableObjectNamespace<CounterObject>;
  /**
   * The start of each object's name. Several Weirs with different prefixes can share a namespace.
   */
  readonly prefix: string;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * Lets a task run to its end although no response waits for it.
   *
   * @default waitUntil
   */
  readonly background?: (task: Promise<unknown>) => void;
  /**
   * Makes each call to an object, and each decision that needs several objects.
   *
   * @default calls without a deadline and without a breaker
   */
  readonly makeCall?: MakeCall;
}

/**
 * Creates a store that keeps its counters in Durable Objects, with one object for each identity.
 *
 * Rules with the same key share an object, and groups that need only the same object share a call. All
 * other groups have calls of their own, so that an object that fails or is slow affects only its own groups.
 * If a group's counters are in several objects, the group is decided in two phases (see two-phase.ts).
 */
export function createDurableObjectStore(options: DurableObjectOptions): Store {
  const { namespace, prefix } = options;
  const store = new ObjectStore(options, (identity) =>
    namespace.getByName(`${prefix}:${identity}`),
  );
  return {
    decide: (groups, now, unused) => store.decide(groups, now, unused),
    adjust: (counters, now, unused) => store.adjust(counters, now, unused),
    reset: (counters, now) => store.reset(counters, now),
  };
}

class ObjectStore implements Store {
  readonly #objectOf: ObjectOf;
  readonly #timeoutMs: number;
  readonly #background: (task: Promise<unknown>) => void;
  readonly #call: MakeCall;
  readonly #calls: ObjectCalls;
  readonly #usage = new ShardUsage();

  constructor(options: DurableObjectOptions, objectOf: ObjectOf) {
    const { timeoutMs, background = waitUntil, makeCall = (_, __, call) => call() } = options;
    this.#objectOf = objectOf;
    this.#timeoutMs = timeoutMs;
    this.#background = background;
    this.#call = (name, counters, call) =>
      makeCall(name, counters, () => call().catch(throwStoreError));
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
      const indices = identity === undefined ? undefined : shared.get(identity);
      if (identity === undefined || (isDependent(groups, index) && indices?.[0] !== 0)) continue;
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
      const decided = this.#call("decide", own.flat(), () =>
        this.#calls.decide(identity, own, now, returns, deadline),
      );
      for (const [at, index] of indices.entries()) {
        answers[index] = decided.then((all) => all[at] as Answer);
      }
    }
    for (const [index, group] of groups.entries()) {
      if (answers[index]) continue;
      const decide = () =>
        this.#call("decide", group, () => this.#decideGroup(group, now, deadline));
      answers[index] = isDependent(groups, index)
        ? decideAfter(answers[0] as Promise<Answer>, decide, deadline)
        : decide();
    }
    return answers;
  }

  async adjust(
    counters: readonly Adjustment[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<readonly Tally[]> {
    const tallies: Tally[] = [];
    await this.#call("adjust", counters, async () => {
      const chosen = await chooseShardsToAdjust(this.#objectOf, counters, now);
      const parts = partsOf(chosen);
      const isAdjusted = ({ counter }: UnusedQuota) =>
        parts.some(({ identity }) => identity === counter.identity);
      this.#returnUnused(
        unused.filter((each) => !isAdjusted(each)),
        now,
      );
      const adjusted = parts.map(async ({ identity, counters: own, positions }) => {
        const returns = unused.filter(({ counter }) => counter.identity === identity);
        const states: Tally[] = await this.#objectOf(identity).adjust(own, now, returns);
        for (const [index, tally] of states.entries()) {
          const at = positions[index] as number;
          const [counter, shard] = [counters[at], chosen[at]] as [Demand, Demand];
          const count = Math.min(MAX_COUNT, tally.count + (counter.ceiling - shard.ceiling));
          tallies[at] = { ...tally, count };
        }
      });
      await Promise.all(adjusted);
    });
    return tallies;
  }

  async reset(counters: readonly Removal[], now?: number): Promise<void> {
    await this.#call("reset", counters, () =>
      Promise.all(
        partsOf(counters).map((part) => this.#objectOf(part.identity).reset(part.counters, now)),
      ),
    );
  }

  /**
   * Decides a group whose counters have shards or are stored in several objects.
   *
   * If a denied counter has a second shard, the group is decided again with that shard. This ends when the
   * group is admitted or has a counter that was denied in all of its shards. It also ends when a repeated call
   * fails or the deadline has passed.
   */
  async #decideGroup(
    group: Group,
    now: number | undefined,
    deadline: DecisionDeadline,
  ): Promise<Answer> {
    const choice = new ShardChoice(group, this.#usage);
    const decide = async () => {
      const parts = partsOf(choice.counters);
      const [{ identity }] = parts as [ObjectPart];
      if (parts.length > 1) {
        const calls = new DecisionCalls(this.#objectOf, this.#calls, now, deadline);
        return decideAcross(calls, parts, deadline, this.#background);
      }
      const [answer] = await this.#calls.decide(identity, [choice.counters], now, [], deadline);
      return answer as Answer;
    };
    let answer = await decide();
    let hasChanged = choice.record(answer.admitted, answer.tallies);
    while (hasChanged && deadline.timeLeftMs > 0) {
      // The first shard has denied the group. If the second shard does not answer, the group stays denied.
      const next = await decide().catch(() => undefined);
      if (!next) break;
      answer = next;
      hasChanged = choice.record(answer.admitted, answer.tallies);
    }
    const tallies = choice.tallies();
    if (!hasChanged) return { ...answer, tallies };
    // The shard that did not answer may have quota left.
    return { ...answer, tallies: tallies.map((tally) => tally && { ...tally, isUncertain: true }) };
  }

  /**
   * Returns unused quota in separate calls. If a call fails, the quota stays charged, and the
   * failure is ignored.
   */
  #returnUnused(unused: readonly UnusedQuota[], now: number | undefined): void {
    const calls = unused.map((each) =>
      this.#objectOf(each.counter.identity).returnUnused([each], now),
    );
    if (calls.length > 0) this.#background(Promise.allSettled(calls));
  }
}

/** Returns the identity of the object in which all counters are stored; undefined if there are several. */
function onlyObjectOf(group: Group): string | undefined {
  const identity = group[0]?.identity;
  const isThere = (counter: Demand) => counter.identity === identity && !counter.alternative;
  return group.every(isThere) ? identity : undefined;
}

async function decideAfter(
  first: Promise<Answer>,
  decide: () => Promise<Answer>,
  deadline: DecisionDeadline,
): Promise<Answer> {
  const { admitted, now } = await first;
  return admitted ? inTime(decide, Math.max(1, deadline.timeLeftMs)) : skipped(now);
}

/**
 * Converts an error of a call into a `StoreError`. The message of an object's error is left out,
 * because it may contain keys.
 */
function throwStoreError(error: unknown): never {
  if (error instanceof StoreError) throw error;
  const isOverloaded = (error as { overloaded?: unknown } | undefined)?.overloaded === true;
  throw isOverloaded
    ? new StoreError("error-reply", "a Durable Object is overloaded")
    : new StoreError("unreachable", "a Durable Object did not answer");
}

import { waitUntil } from "cloudflare:workers";
import { type Counter, MAX_COUNT, type Tally, type UnusedQuota } from "../../engine/counter.ts";
import type { Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { CounterObject } from "./counter-object.ts";
import { ShardChoice, ShardUse } from "./shard-choice.ts";
import {
  type Deadline,
  decideAcross,
  type GroupDecision,
  maxWaitWithin,
  type ObjectPart,
} from "./two-phase.ts";

export interface DurableObjectOptions {
  readonly namespace: DurableObjectNamespace<CounterObject>;
  /** Tells the objects of one Weir from those of another in the same namespace. */
  readonly prefix: string;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
  /** Keeps a task alive that no response waits for. */
  readonly background?: (task: Promise<unknown>) => void;
}

type Group = readonly Counter[];

/**
 * Counters in Durable Objects, one object for each identity.
 *
 * Rules with the same key share an object, so most decisions are one call. A group with counters
 * in several objects is decided in two steps, see two-phase.ts. Of two shards the one that was last
 * seen with more room is asked first, see shard-choice.ts.
 */
export function createDurableObjectStore({
  namespace,
  prefix,
  timeoutMs,
  background = waitUntil,
}: DurableObjectOptions): Store {
  const objectOf = (identity: string) => namespace.getByName(`${prefix}:${identity}`);
  const use = new ShardUse();

  /** A decision's, from now on. A clock that steps back must not make it longer. */
  function startDeadline(): Deadline {
    const startedAt = Date.now();
    return { timeLeftMs: () => Math.min(timeoutMs, timeoutMs - (Date.now() - startedAt)) };
  }

  /** To objects that nothing else is asked of. A failed return is ignored: the quota stays charged. */
  function giveBack(unused: readonly UnusedQuota[], now?: number): Promise<unknown> {
    return Promise.allSettled(
      unused.map((each) => objectOf(each.counter.identity).giveBack([each], now)),
    );
  }

  async function decideGroups(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    deadline: Deadline,
  ): Promise<GroupDecision[]> {
    const verdicts: GroupDecision[] = [];
    const inOne = new Map<string, number[]>();
    const calls: Promise<unknown>[] = [];
    for (const [index, group] of groups.entries()) {
      const parts = partsOf(group);
      const [{ identity }] = parts as [ObjectPart];
      if (parts.length === 1) inOne.set(identity, [...(inOne.get(identity) ?? []), index]);
      else {
        const across = decideAcross(objectOf, parts, now, deadline, background);
        calls.push(across.then((verdict) => (verdicts[index] = verdict)));
      }
    }
    const toOthers = unused.filter(({ counter }) => !inOne.has(counter.identity));
    if (toOthers.length > 0) background(giveBack(toOthers, now));
    for (const [identity, indices] of inOne) {
      const own = indices.map((index) => groups[index] as Group);
      const back = unused.filter(({ counter }) => counter.identity === identity);
      const maxWaitMs = maxWaitWithin(deadline);
      calls.push(
        objectOf(identity)
          .decide(own, now, maxWaitMs, back)
          .then((answers) => {
            for (const [at, index] of indices.entries()) {
              verdicts[index] = answers[at] as GroupDecision;
            }
          }),
      );
    }
    await Promise.all(calls);
    return verdicts;
  }

  /** Of each two shards the one with more room, or with less of it for what is given back. */
  async function choose(counters: Group, now?: number): Promise<Counter[]> {
    const sides = counters.flatMap((counter) =>
      counter.alternative ? [counter, counter.alternative] : [],
    );
    const used = new Map<string, number>();
    await Promise.all(
      partsOf(sides).map(async ({ identity, counters: own }) => {
        const looks = own.map(({ alternative, ...each }) => [
          { ...each, cost: 0, checkOnly: true },
        ]);
        const verdicts = await objectOf(identity).decide(looks, now, 0);
        for (const [index, { tallies }] of verdicts.entries()) {
          used.set((own[index] as Counter).key, (tallies[0] as Tally).count);
        }
      }),
    );
    return counters.map((counter) => {
      const { alternative, ...own } = counter;
      if (!alternative) return counter;
      const roomOf = ({ key, ceiling }: Counter) => ceiling - (used.get(key) as number);
      return roomOf(alternative) > roomOf(own) === counter.cost >= 0 ? alternative : own;
    });
  }

  /** Decides until each group is admitted, or has a counter without room in either of its shards. */
  async function decideChoices(
    choices: readonly ShardChoice[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    deadline: Deadline,
  ): Promise<GroupDecision[]> {
    const countersOf = (some: readonly ShardChoice[]) => some.map(({ counters }) => counters);
    const verdicts = await decideGroups(countersOf(choices), now, unused, deadline);
    const hasMoved = (choice: ShardChoice, index: number) => {
      const { admitted, tallies } = verdicts[index] as GroupDecision;
      return choice.next(admitted, tallies);
    };
    let moved = choices.filter(hasMoved);
    while (moved.length > 0 && deadline.timeLeftMs() > 0) {
      const asked: readonly ShardChoice[] = moved;
      const answers = await decideGroups(countersOf(asked), now, [], deadline).catch(() => []);
      // The shard that was asked has denied, and the other one cannot say that it would admit.
      if (answers.length === 0) break;
      for (const [at, choice] of asked.entries()) {
        verdicts[choices.indexOf(choice)] = answers[at] as GroupDecision;
      }
      moved = asked.filter((choice) => hasMoved(choice, choices.indexOf(choice)));
    }
    return verdicts.map((verdict, index) => {
      const choice = choices[index] as ShardChoice;
      // Nothing is to be learnt of a shard that did not answer.
      const skipCache = moved.includes(choice);
      return { ...verdict, tallies: choice.tallies(), ...(skipCache && { skipCache }) };
    });
  }

  return {
    async decide(groups, now, unused = []) {
      try {
        const choices = groups.map((group) => new ShardChoice(group, use));
        const verdicts = await decideChoices(choices, now, unused, startDeadline());
        return {
          now: verdicts[0]?.now ?? now ?? Date.now(),
          groups: verdicts.map(({ now: _, ...answer }) => answer),
        };
      } catch (error) {
        throw failureOf(error);
      }
    },

    async adjust(counters, now) {
      const tallies: Tally[] = [];
      try {
        const chosen = await choose(counters, now);
        await Promise.all(
          partsOf(chosen).map(async (part) => {
            const adjusted: Tally[] = await objectOf(part.identity).adjust(part.counters, now);
            for (const [at, tally] of adjusted.entries()) {
              const position = part.positions[at] as number;
              const [own, taken] = [counters[position], chosen[position]] as [Counter, Counter];
              const count = Math.min(MAX_COUNT, tally.count + (own.ceiling - taken.ceiling));
              tallies[position] = { ...tally, count };
            }
          }),
        );
        return tallies;
      } catch (error) {
        throw failureOf(error);
      }
    },

    async reset(counters, now) {
      try {
        await Promise.all(
          partsOf(counters).map((part) => objectOf(part.identity).reset(part.counters, now)),
        );
      } catch (error) {
        throw failureOf(error);
      }
    },
  };
}

/** The failure that an error stands for. An object's message may say anything, so it is left out. */
function failureOf(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const isOverloaded = (error as { overloaded?: unknown } | undefined)?.overloaded === true;
  return isOverloaded
    ? new StoreError("error-reply", "a Durable Object is overloaded")
    : new StoreError("unreachable", "a Durable Object did not answer");
}

/** A group's counters by the object they live in, in the order in which objects are asked. */
function partsOf(group: Group): ObjectPart[] {
  const parts = new Map<string, ObjectPart>();
  for (const [position, counter] of group.entries()) {
    const { identity } = counter;
    const part = parts.get(identity) ?? { identity, counters: [], positions: [] };
    parts.set(identity, part);
    part.counters.push(counter);
    part.positions.push(position);
  }
  return [...parts.values()].sort((a, b) => (a.identity < b.identity ? -1 : 1));
}

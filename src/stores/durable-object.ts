import { waitUntil } from "cloudflare:workers";
import { type Counter, MAX_COUNT, type Tally, type Unused } from "../engine/fixed-window.ts";
import type { CounterObject, HoldVerdict, TimedVerdict } from "./counter-object.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

export interface DurableObjectOptions {
  readonly namespace: DurableObjectNamespace<CounterObject>;
  /** Tells the objects of one Weir from those of another in the same namespace. */
  readonly prefix: string;
  /** How long an object may wait for other decisions to be settled, in milliseconds. */
  readonly timeoutMs: number;
}

type Group = readonly Counter[];

/** The counters of a group that live in one object, and where they stand in the group. */
interface Part {
  readonly identity: string;
  readonly counters: Counter[];
  readonly positions: number[];
}

/** A verdict of several objects: what it says of one may include open holds on another. */
interface AcrossVerdict extends TimedVerdict {
  readonly isUnsettled?: boolean;
}

interface Answer {
  readonly part: Part;
  readonly verdict: HoldVerdict;
}

/**
 * Counters in Durable Objects, one object for each identity.
 *
 * Rules with the same key share an object, so most decisions are one call. A group with counters
 * in several objects is decided in two steps: each object but the last charges on condition and
 * holds that open; the last one decides; then what is held is kept or given back. Every decision
 * goes through its objects in the same order, so that no two wait for each other, and an object
 * lets those who find no room wait for its open holds, so that nobody is denied for quota that is
 * then given back.
 */
export function durableObjectStore({ namespace, prefix, timeoutMs }: DurableObjectOptions): Store {
  const objectOf = (identity: string) => namespace.getByName(`${prefix}:${identity}`);

  async function decideInOne(
    identity: string,
    groups: Group[],
    now?: number,
    unused: Unused[] = [],
  ): Promise<TimedVerdict[]> {
    return await objectOf(identity).decide(groups, now, timeoutMs, unused);
  }

  async function decideAcross(parts: Part[], now?: number): Promise<AcrossVerdict> {
    const answers: Answer[] = [];
    try {
      for (const part of parts) {
        const verdict = await (part === parts.at(-1) ? decidePart : holdPart)(part, now);
        answers.push({ part, verdict });
        if (!verdict.admitted) break;
      }
    } catch (error) {
      waitUntil(settle(answers, false));
      throw error;
    }
    const admitted = answers.every(({ verdict }) => verdict.admitted);
    if (admitted) {
      waitUntil(settle(answers, true));
      return assemble(answers, true);
    }
    await settle(answers, false);
    const others = parts.slice(answers.length).map((part) => lookAt(part, now));
    return assemble([...answers, ...(await Promise.all(others))], false);
  }

  /** What is held may have to be given back, so it is no more than the cost. */
  async function holdPart({ identity, counters }: Part, now?: number): Promise<HoldVerdict> {
    const costs = counters.map(({ block, ...counter }) => counter);
    return await objectOf(identity).hold(costs, now, timeoutMs);
  }

  async function decidePart({ identity, counters }: Part, now?: number): Promise<HoldVerdict> {
    const [verdict] = await decideInOne(identity, [counters], now);
    return verdict as TimedVerdict;
  }

  /** What a part that was not asked stands at: a decision that charges nothing. */
  async function lookAt(part: Part, now?: number): Promise<Answer> {
    const counters = part.counters.map((counter) => ({ ...counter, checkOnly: true }));
    return { part, verdict: await decidePart({ ...part, counters }, now) };
  }

  /** A hold that cannot be settled stays charged, which errs on the side of the limit. */
  function settle(answers: Answer[], keep: boolean): Promise<unknown> {
    const held = answers.filter(({ verdict }) => verdict.hold !== undefined);
    return Promise.allSettled(
      held.map(({ part, verdict }) => objectOf(part.identity).settle(verdict.hold as string, keep)),
    );
  }

  /**
   * Where a counter has another to choose instead, the one of the two with more room, or with less
   * of it for what is given back. They live in different objects, so both are looked at first; the
   * one that is chosen then decides by itself.
   */
  async function choose(counter: Counter, now?: number): Promise<Counter> {
    const { or, ...own } = counter;
    if (!or) return counter;
    const roomOf = async (each: Counter) => {
      const { verdict } = await lookAt(partOf({ ...each, cost: 0 }), now);
      return each.ceiling - (verdict.tallies[0] as Tally).count;
    };
    const [room, otherRoom] = await Promise.all([roomOf(own), roomOf(or)]);
    return otherRoom > room === counter.cost >= 0 ? or : own;
  }

  /** Quota that is not given back stays charged, which errs on the side of the limit. */
  function giveBack(unused: readonly Unused[], now?: number): Promise<unknown> {
    return Promise.allSettled(
      unused.map((each) => objectOf(each.counter.identity).giveBack([each], now)),
    );
  }

  async function decideGroups(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly Unused[],
  ): Promise<AcrossVerdict[]> {
    const verdicts: AcrossVerdict[] = [];
    const inOne = new Map<string, number[]>();
    const calls: Promise<unknown>[] = [];
    for (const [index, group] of groups.entries()) {
      const parts = partsOf(group);
      const [{ identity }] = parts as [Part];
      if (parts.length === 1) inOne.set(identity, [...(inOne.get(identity) ?? []), index]);
      else calls.push(decideAcross(parts, now).then((verdict) => (verdicts[index] = verdict)));
    }
    const toOthers = unused.filter(({ counter }) => !inOne.has(counter.identity));
    if (toOthers.length > 0) waitUntil(giveBack(toOthers, now));
    for (const [identity, indices] of inOne) {
      const own = indices.map((index) => groups[index] as Group);
      const back = unused.filter(({ counter }) => counter.identity === identity);
      calls.push(
        decideInOne(identity, own, now, back).then((answers) => {
          for (const [at, index] of indices.entries()) {
            verdicts[index] = answers[at] as TimedVerdict;
          }
        }),
      );
    }
    await Promise.all(calls);
    return verdicts;
  }

  return {
    async decide(groups, now, unused = []) {
      try {
        const chosen = await Promise.all(
          groups.map((group) => Promise.all(group.map((counter) => choose(counter, now)))),
        );
        const verdicts = await decideGroups(chosen, now, unused);
        return {
          now: verdicts[0]?.now ?? now ?? Date.now(),
          groups: verdicts.map(({ now: _, ...verdict }, index) => {
            const [asked, taken] = [groups[index] as Group, chosen[index] as Group];
            return { ...verdict, tallies: asIfOf(asked, taken, verdict.tallies) };
          }),
        };
      } catch (error) {
        throw failureOf(error);
      }
    },

    async adjust(counters, now) {
      const tallies: Tally[] = [];
      try {
        const chosen = await Promise.all(counters.map((counter) => choose(counter, now)));
        await Promise.all(
          partsOf(chosen).map(async (part) => {
            const adjusted: Tally[] = await objectOf(part.identity).adjust(part.counters, now);
            for (const [at, tally] of adjusted.entries()) {
              tallies[part.positions[at] as number] = tally;
            }
          }),
        );
        return asIfOf(counters, chosen, tallies);
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

/** The failure that an object's error stands for. Its message may say anything, so it is not told. */
function failureOf(error: unknown): StoreError {
  const isOverloaded = (error as { overloaded?: unknown } | undefined)?.overloaded === true;
  return isOverloaded
    ? new StoreError("refused", "a Durable Object is overloaded")
    : new StoreError("unreachable", "a Durable Object did not answer");
}

/** Says of counters that were chosen instead what would be said of those that were asked. */
function asIfOf(asked: Group, chosen: Group, tallies: readonly Tally[]): Tally[] {
  return tallies.map((tally, index) => {
    const shift = (asked[index] as Counter).ceiling - (chosen[index] as Counter).ceiling;
    return { ...tally, count: Math.min(MAX_COUNT, tally.count + shift) };
  });
}

function partOf(counter: Counter): Part {
  return { identity: counter.identity, counters: [counter], positions: [0] };
}

/** A group's counters by the object they live in, in the order in which objects are asked. */
function partsOf(group: Group): Part[] {
  const parts = new Map<string, Part>();
  for (const [position, counter] of group.entries()) {
    const { identity } = counter;
    const part = parts.get(identity) ?? { identity, counters: [], positions: [] };
    parts.set(identity, part);
    part.counters.push(counter);
    part.positions.push(position);
  }
  return [...parts.values()].sort((a, b) => (a.identity < b.identity ? -1 : 1));
}

function assemble(answers: readonly Answer[], admitted: boolean): AcrossVerdict {
  const tallies: Tally[] = [];
  for (const { part, verdict } of answers) {
    // What was held and given back is no longer part of the count.
    const returned = !admitted && verdict.hold !== undefined;
    for (const [index, tally] of verdict.tallies.entries()) {
      const { cost, checkOnly } = part.counters[index] as Counter;
      tallies[part.positions[index] as number] =
        returned && !checkOnly ? { ...tally, count: tally.count - cost } : tally;
    }
  }
  const [first] = answers as [Answer];
  return { admitted, tallies, now: first.verdict.now, ...(!admitted && { isUnsettled: true }) };
}

import {
  type Counter,
  counterId,
  type Demand,
  MAX_COUNT,
  type Tally,
} from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";
import type { ObjectOf } from "./object-calls.ts";

/** The maximum number of shards stored. That many shards take about 200 KB. */
const MAX_SHARDS = 1024;

/**
 * The last counts of shards that this isolate has seen. These counts determine which of two shards
 * is called first. So both shards fill up nearly evenly, and a request usually takes only one call.
 * The counts never decide a request.
 */
export class ShardUsage {
  readonly #counts = new Map<string, { count: number; validUntil: number }>();

  record(counter: Demand, { count, resetMs }: Tally): void {
    const id = counterId(counter);
    this.#counts.delete(id);
    this.#counts.set(id, { count, validUntil: Date.now() + resetMs });
    if (this.#counts.size <= MAX_SHARDS) return;
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest);
      break;
    }
  }

  /** The quota left when the shard was last seen; the whole ceiling if no valid count is stored. */
  quotaLeft(counter: Demand): number {
    const seen = this.#counts.get(counterId(counter));
    return counter.ceiling - (seen && Date.now() < seen.validUntil ? seen.count : 0);
  }
}

/** The index of a shard: 0 is the counter itself, 1 its alternative. */
type Side = 0 | 1;

/** A counter of a group, and the shard that was chosen for it. */
interface Choice {
  /** The counter, and its alternative if it has one. */
  readonly shards: readonly Demand[];
  chosen: Side;
  /** The tally of each shard that has denied the counter, for lack of quota or because of a ban. */
  readonly denials: [Tally | undefined, Tally | undefined];
  /** The last tally that arrived, and the shard that sent it. */
  last?: { readonly tally: Tally; readonly side: Side } | undefined;
}

/**
 * Chooses the shards in which a group is counted. If a shard has no quota left, the other shard is
 * called before the group is denied. So an admitted request usually takes one call, and a denied
 * request takes two.
 *
 * Counters with the same two shards, such as the windows of one rule, use the same shard while they
 * can, so that one object decides them.
 */
export class ShardChoice {
  readonly #choices: readonly Choice[];
  readonly #usage: ShardUsage;

  constructor(group: readonly Demand[], usage: ShardUsage) {
    this.#usage = usage;
    this.#choices = group.map((counter) => {
      const { alternative, ...own } = counter;
      return {
        shards: alternative ? [own, alternative] : [counter],
        chosen: 0,
        denials: [undefined, undefined],
      };
    });
    for (const choices of this.#choicesByShards()) {
      const [own, other] = [this.#quotaLeft(choices, 0), this.#quotaLeft(choices, 1)];
      const usesOther = own === other ? Math.random() < 0.5 : own < other;
      for (const choice of choices) choice.chosen = usesOther ? 1 : 0;
    }
  }

  /** The chosen shard of each counter. These counters have no alternatives. */
  get counters(): Demand[] {
    return this.#choices.map(({ shards, chosen }) => shards[chosen] as Demand);
  }

  /**
   * Records the verdict on {@link counters}.
   *
   * @returns whether a counter has changed to its second shard, so that the group must be decided
   * again
   */
  record(admitted: boolean, tallies: readonly (Tally | undefined)[]): boolean {
    let wasDenied = false;
    for (const [index, choice] of this.#choices.entries()) {
      const tally = tallies[index];
      const counter = choice.shards[choice.chosen] as Demand;
      choice.last = tally && { tally, side: choice.chosen };
      if (!tally) continue;
      if (choice.shards.length > 1) this.#usage.record(counter, tally);
      if (admitted || (tally.banMs === 0 && hasQuota(counter, tally.count))) continue;
      wasDenied = true;
      choice.denials[choice.chosen] = tally;
    }
    if (!wasDenied || this.#isDenied()) return false;
    for (const choices of this.#choicesByShards()) changeShards(choices);
    return true;
  }

  /**
   * The tallies of the group's counters. If a tally comes from an alternative, its count is
   * converted so that `ceiling - count` of the counter is the alternative's quota left.
   */
  tallies(): (Tally | undefined)[] {
    const isDenied = this.#isDenied();
    return this.#choices.map(({ shards, denials, last }) => {
      const [own, other = own] = shards as [Demand, Demand?];
      const countOffset = own.ceiling - other.ceiling;
      const underOwnCeiling = (tally: Tally, side: Side) =>
        side === 0
          ? tally
          : {
              ...tally,
              count: Math.min(MAX_COUNT, tally.count + countOffset),
              ...(!isDenied && { inAlternative: true as const }),
            };
      if (denials[0] && denials[1]) {
        const second = underOwnCeiling(denials[1], 1);
        return denials[0].count <= second.count ? denials[0] : second;
      }
      // If the group was denied because of a different counter and only one shard of this counter
      // has denied, the second shard may still have quota left. So this counter's state is unknown.
      if (!last || (isDenied && other !== own && denials[last.side])) return undefined;
      return underOwnCeiling(last.tally, last.side);
    });
  }

  /** Whether the group is denied, because all shards of one of its counters have denied. */
  #isDenied(): boolean {
    return this.#choices.some(({ shards, denials }) => shards.every((_, side) => denials[side]));
  }

  /** The counters that have alternatives, grouped by their two shards. */
  #choicesByShards(): Iterable<Choice[]> {
    const groups = new Map<string, Choice[]>();
    for (const choice of this.#choices) {
      if (choice.shards.length === 1) continue;
      const key = choice.shards.map(({ identity }) => identity).join(" ");
      const group = groups.get(key);
      if (group) group.push(choice);
      else groups.set(key, [choice]);
    }
    return groups.values();
  }

  /** The smallest quota left among these counters in one shard. */
  #quotaLeft(choices: readonly Choice[], side: Side): number {
    return Math.min(...choices.map(({ shards }) => this.#usage.quotaLeft(shards[side] as Demand)));
  }
}

/**
 * Moves all counters to a shard that has denied none of them. If there is no such shard, moves only
 * the denied counters.
 */
function changeShards(choices: readonly Choice[]): void {
  const mayAdmitAll = (side: Side) => choices.every(({ denials }) => !denials[side]);
  const side = ([0, 1] as const).find(mayAdmitAll);
  for (const choice of choices) {
    if (side !== undefined) {
      if (!mayAdmitAll(choice.chosen)) choice.chosen = side;
    } else if (choice.denials[choice.chosen]) {
      choice.chosen = choice.chosen === 0 ? 1 : 0;
    }
  }
}

/**
 * Chooses the shards to adjust. First it reads the counts of both shards. For a positive cost it
 * then chooses the shard with more quota left, and for a negative cost the shard with less quota
 * left.
 */
export async function chooseShardsToAdjust(
  objectOf: ObjectOf,
  counters: readonly Demand[],
  now: number | undefined,
): Promise<Demand[]> {
  const shards = counters.flatMap((counter) =>
    counter.alternative ? [counter, counter.alternative] : [],
  );
  const counts = new Map<string, number>();
  await Promise.all(
    partsOf(shards).map(async (part) => {
      const checks = part.counters.map(({ alternative, ...counter }) => [
        { ...counter, cost: 0, checkOnly: true },
      ]);
      const verdicts = await objectOf(part.identity).decide(checks, now, 0);
      for (const [index, { tallies }] of verdicts.entries()) {
        counts.set((part.counters[index] as Demand).key, (tallies[0] as Tally).count);
      }
    }),
  );
  const quotaLeft = ({ key, ceiling }: Demand) => ceiling - (counts.get(key) as number);
  return counters.map((counter) => {
    const { alternative, ...own } = counter;
    if (!alternative) return counter;
    return quotaLeft(alternative) > quotaLeft(own) === counter.cost >= 0 ? alternative : own;
  });
}

/** The counters of a group that are stored in one object. */
export interface ObjectPart<Each extends Counter = Demand> {
  readonly identity: string;
  readonly reach: number;
  readonly counters: Each[];
  /** The index of each counter in the group. */
  readonly positions: number[];
}

/**
 * Splits a group into one part for each object. The client's own objects come first, and the objects
 * that most clients share come last. So a client that exceeds a limit of its own is denied before it
 * takes quota, even for a moment, that others share.
 *
 * An identity always has the same reach, so all decisions call objects in the same order. A decision
 * that waits for an object has holds only in objects before it. So no two decisions wait for each
 * other.
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

import { type Counter, MAX_COUNT, type Tally } from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";

/** Shards whose use is remembered, at most: about 200 KB. */
const MAX_REMEMBERED = 1024;

/**
 * What shards were last seen to have used, in this isolate's memory. It says which of two is asked
 * first, so that all fill up nearly alike for one call each; it decides nothing.
 */
export class ShardUse {
  readonly #seen = new Map<string, { count: number; until: number }>();

  learn({ key }: Counter, { count, resetMs }: Tally): void {
    this.#seen.delete(key);
    this.#seen.set(key, { count, until: Date.now() + resetMs });
    if (this.#seen.size <= MAX_REMEMBERED) return;
    for (const oldest of this.#seen.keys()) {
      this.#seen.delete(oldest);
      break;
    }
  }

  roomOf({ key, ceiling }: Counter): number {
    const seen = this.#seen.get(key);
    return ceiling - (seen && Date.now() < seen.until ? seen.count : 0);
  }
}

type Side = 0 | 1;

/** A counter of a group, with the other shard it may be counted in, if there is one. */
interface Choice {
  readonly sides: readonly Counter[];
  chosen: Side;
  /** What was answered of a side that had no room. */
  readonly full: [Tally | undefined, Tally | undefined];
  /** What was answered last, and of which side. */
  last?: { readonly tally: Tally; readonly side: Side } | undefined;
}

/**
 * Which shards a group is counted in. Where one has no room the other is asked before it is a denial.
 * So it takes one call for a request that is admitted, as a rule, and two for one that is denied.
 *
 * Counters with the same two shards, as the windows of a rule have, go to the same one of them while
 * they can: then one object decides them.
 */
export class ShardChoice {
  readonly #choices: readonly Choice[];
  readonly #use: ShardUse;

  constructor(group: readonly Counter[], use: ShardUse) {
    this.#use = use;
    this.#choices = group.map((counter) => {
      const { alternative, ...own } = counter;
      return {
        sides: alternative ? [own, alternative] : [counter],
        chosen: 0,
        full: [undefined, undefined],
      };
    });
    for (const pair of this.#pairs()) {
      const [own, other] = [this.#roomIn(pair, 0), this.#roomIn(pair, 1)];
      const isOther = own === other ? Math.random() < 0.5 : own < other;
      for (const choice of pair) choice.chosen = isOther ? 1 : 0;
    }
  }

  /** The counters to ask about, each without a choice. */
  get counters(): Counter[] {
    return this.#choices.map(({ sides, chosen }) => sides[chosen] as Counter);
  }

  /**
   * Learns from an answer about {@link counters}.
   *
   * @returns whether they are others now, to be asked about: those that had no room have moved
   */
  next(admitted: boolean, tallies: readonly (Tally | undefined)[]): boolean {
    let isFull = false;
    for (const [index, choice] of this.#choices.entries()) {
      const tally = tallies[index];
      const counter = choice.sides[choice.chosen] as Counter;
      choice.last = tally && { tally, side: choice.chosen };
      if (!tally) continue;
      if (choice.sides.length > 1) this.#use.learn(counter, tally);
      if (admitted || (tally.banMs === 0 && hasQuota(counter, tally.count))) continue;
      isFull = true;
      choice.full[choice.chosen] = tally;
    }
    if (!isFull || this.#isOver()) return false;
    for (const pair of this.#pairs()) this.#move(pair);
    return true;
  }

  /** What was answered, said of the counters that were asked for. */
  tallies(): (Tally | undefined)[] {
    const isOver = this.#isOver();
    return this.#choices.map(({ sides, full, last }) => {
      const [own, other = own] = sides as [Counter, Counter?];
      const shift = own.ceiling - other.ceiling;
      const asIfOwn = (tally: Tally, side: Side) => {
        return side === 0 ? tally : { ...tally, count: Math.min(MAX_COUNT, tally.count + shift) };
      };
      if (full[0] && full[1]) {
        const second = asIfOwn(full[1], 1);
        return full[0].count <= second.count ? full[0] : second;
      }
      // Where another counter denies, one shard without room says nothing of the other one.
      if (!last || (isOver && other !== own && full[last.side])) return undefined;
      return asIfOwn(last.tally, last.side);
    });
  }

  /** Whether a counter has no room wherever it may be counted. */
  #isOver(): boolean {
    return this.#choices.some(({ sides, full }) => sides.every((_, side) => full[side]));
  }

  /** The counters that have a choice, by their two shards. */
  #pairs(): Iterable<Choice[]> {
    const pairs = new Map<string, Choice[]>();
    for (const choice of this.#choices) {
      if (choice.sides.length === 1) continue;
      const key = choice.sides.map(({ identity }) => identity).join(" ");
      const pair = pairs.get(key);
      if (pair) pair.push(choice);
      else pairs.set(key, [choice]);
    }
    return pairs.values();
  }

  #roomIn(pair: readonly Choice[], side: Side): number {
    return Math.min(...pair.map(({ sides }) => this.#use.roomOf(sides[side] as Counter)));
  }

  /** To the other shard all together, where it may have room for all; otherwise those that must. */
  #move(pair: readonly Choice[]): void {
    const mayHoldAll = (side: Side) => pair.every(({ full }) => !full[side]);
    const side = ([0, 1] as const).find(mayHoldAll);
    for (const choice of pair) {
      if (side !== undefined) {
        if (!mayHoldAll(choice.chosen)) choice.chosen = side;
      } else if (choice.full[choice.chosen]) {
        choice.chosen = choice.chosen === 0 ? 1 : 0;
      }
    }
  }
}

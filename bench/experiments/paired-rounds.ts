import { median } from "./median.ts";

/** The median of several rounds, with the smallest and the largest value. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/**
 * Returns the difference between two subjects in each round. Anything that slows the machine during
 * a round slows both subjects, so their difference changes little.
 *
 * @throws {RangeError} when the subjects have different numbers of rounds
 */
export function pairedDifferences(values: readonly number[], others: readonly number[]): number[] {
  if (values.length !== others.length) {
    throw new RangeError(`${values.length} rounds cannot be paired with ${others.length}.`);
  }
  return values.map((value, round) => value - (others[round] as number));
}

/**
 * Returns the items in a rotated order that starts with item `turn`, so that the order changes from
 * turn to turn.
 */
export function rotate<Item>(items: readonly Item[], turn: number): Item[] {
  const first = turn % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

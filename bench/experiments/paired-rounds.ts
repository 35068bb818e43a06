import { median } from "./median.ts";

/** The median of some rounds' values, and how far they lie apart. */
export type Spread = { median: number; least: number; most: number };

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/**
 * One subject's values less another's, subtracted within each round: what slows the machine down in a
 * round slows both, and cancels out.
 *
 * @throws {RangeError} when the two do not have the same rounds
 */
export function differences(values: readonly number[], others: readonly number[]): number[] {
  if (values.length !== others.length) throw new RangeError("the rounds are not pairs");
  return values.map((value, round) => value - (others[round] as number));
}

/**
 * The order in which items take their turns: each turn begins with the next item, so that none always
 * comes after the same other.
 */
export function turn<Item>(items: readonly Item[], number: number): Item[] {
  const first = number % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

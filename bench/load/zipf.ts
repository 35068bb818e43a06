import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

export type ZipfOptions = {
  /** How many keys there are. */
  keys: number;
  /** How uneven they are: the key of rank r comes up in proportion to r ** -exponent. */
  exponent: number;
  /** How many to draw. */
  count: number;
  /** The same seed draws the same keys, so that all subjects get the same requests. */
  seed: number;
};

/** Draws keys by Zipf's law: ranks from 0, the most frequent, to `keys` - 1. */
export function zipf({ keys, exponent, count, seed }: ZipfOptions): number[] {
  const upTo = new Float64Array(keys);
  let sum = 0;
  for (let rank = 0; rank < keys; rank++) {
    sum += (rank + 1) ** -exponent;
    upTo[rank] = sum;
  }
  const random = xoroshiro128plus(seed);
  return Array.from({ length: count }, () => firstAbove(upTo, uniformFloat64(random) * sum));
}

/** The first place in an ascending list with more than `value`, which is less than the last. */
function firstAbove(ascending: Float64Array, value: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

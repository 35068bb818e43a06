import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

export interface ZipfOptions {
  /** The number of keys. */
  readonly keys: number;
  /** The probability of the key with rank r is proportional to r ** -exponent. */
  readonly exponent: number;
  /** The number of draws. */
  readonly count: number;
  /** The same seed draws the same keys, so all subjects get the same requests. */
  readonly seed: number;
}

/** Draws keys by Zipf's law. The most frequent key is 0, the rarest is `keys` - 1. */
export function zipf({ keys, exponent, count, seed }: ZipfOptions): number[] {
  const keyAt = zipfKeys(keys, exponent);
  const random = xoroshiro128plus(seed);
  return Array.from({ length: count }, () => keyAt(uniformFloat64(random)));
}

/** Maps uniform random numbers, from 0 to less than 1, to keys from 0 to `keys` - 1 by Zipf's law. */
export function zipfKeys(keys: number, exponent: number): (uniform: number) => number {
  const cumulative = new Float64Array(keys);
  let sum = 0;
  for (let key = 0; key < keys; key++) {
    sum += (key + 1) ** -exponent;
    cumulative[key] = sum;
  }
  return (uniform) => firstAbove(cumulative, uniform * sum);
}

/** Returns the first index with a value above `bound`. `bound` must be below the last value. */
function firstAbove(ascending: Float64Array, bound: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ascending[middle] as number) > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

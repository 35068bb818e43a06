import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** A random generator that is determined by its seed and its purpose. */
export class Random {
  readonly #generator;

  /**
   * @param purpose a name for the use of the numbers. Each purpose has its own sequence. For
   *   example, the traffic stays the same if the network draws more numbers
   */
  constructor(seed: number, purpose: string) {
    this.#generator = xoroshiro128plus(seedOf(seed, purpose));
  }

  /** Returns a number from 0 to less than 1. */
  uniform(): number {
    return uniformFloat64(this.#generator);
  }

  /** Returns a whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.uniform() * count);
  }

  /** Returns true with this probability. */
  chance(probability: number): boolean {
    return probability > 0 && this.uniform() < probability;
  }

  /** Returns the time to the next event of a Poisson process with this mean interval. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }
}

/** Derives a new seed from a seed and a text, with the 32-bit hash FNV-1a. */
export function seedOf(seed: number, text: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${seed}:${text}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) as number), 0x01000193);
  }
  return hash >>> 0;
}

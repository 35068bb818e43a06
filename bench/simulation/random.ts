import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** A random generator that is determined by its seed and its purpose. */
export class Random {
  readonly #generator;

  /**
   * @param purpose what the numbers are for. Each purpose has a sequence of its own, so the traffic stays
   * the same when, for example, the network draws more numbers
   */
  constructor(seed: number, purpose: string) {
    this.#generator = xoroshiro128plus(seedOf(seed, purpose));
  }

  /** From 0 to less than 1. */
  uniform(): number {
    return uniformFloat64(this.#generator);
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.uniform() * count);
  }

  /** Returns true with this probability. */
  chance(probability: number): boolean {
    return probability > 0 && this.uniform() < probability;
  }

  /** The time to the next event of a Poisson process with this mean interval. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }
}

/** Derives a seed from another seed and a text: FNV-1a, 32 bits. */
export function seedOf(seed: number, text: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${seed}:${text}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) as number), 0x01000193);
  }
  return hash >>> 0;
}

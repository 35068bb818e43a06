import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** Chance, the same for the same seed. */
export class Random {
  readonly #generator;

  /**
   * @param purpose what it is drawn for: each has numbers of its own, so that the same requests come
   * whatever becomes of them
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

  chance(probability: number): boolean {
    return probability > 0 && this.uniform() < probability;
  }

  /** How long it takes until something happens that is as likely at any moment. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }
}

/** A seed made of another and of a text: FNV-1a, 32 bits. */
export function seedOf(seed: number, text: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${seed}:${text}`) {
    hash = Math.imul(hash ^ (char.codePointAt(0) as number), 0x01000193);
  }
  return hash >>> 0;
}

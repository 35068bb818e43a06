/** Numbers up to this one are counted one by one. */
const EXACT = 10_000;
/** Higher numbers are counted in ranges: this many of equal length between a power of 2 and the next one. */
const RANGES_PER_DOUBLING = 128;
const FIRST_EXPONENT = Math.floor(Math.log2(EXACT));
const RANGES = (32 - FIRST_EXPONENT) * RANGES_PER_DOUBLING;

/**
 * Counts how often each number occurs, in bounded memory. Results are exact for numbers up to 10,000. Higher
 * numbers that differ by less than 0.8 % may be counted as their mean.
 */
export class NumberCounts {
  /** How many numbers there are. */
  total = 0;
  /** The highest number; 0 if there is none. Always exact. */
  max = 0;
  readonly #exact = new Float64Array(EXACT + 1);
  readonly #ranges = new Float64Array(RANGES);
  readonly #sums = new Float64Array(RANGES);

  /**
   * @param value a whole number below 2 ** 32
   * @param weight how often it occurs
   */
  add(value: number, weight: number): void {
    this.total += weight;
    if (value > this.max) this.max = value;
    if (value <= EXACT) {
      this.#exact[value] = (this.#exact[value] as number) + weight;
      return;
    }
    const range = rangeOf(value);
    this.#ranges[range] = (this.#ranges[range] as number) + weight;
    this.#sums[range] = (this.#sums[range] as number) + value * weight;
  }

  /**
   * Returns the lowest number that at least this share of all numbers does not exceed; 0 if there is no number.
   *
   * @param share above 0, at most 1
   */
  quantile(share: number): number {
    // Without the rounding, 0.95 of 20 numbers could be a little above 19.
    const wanted = Math.ceil(Number((share * this.total).toPrecision(12)));
    let seen = 0;
    for (const [value, count] of this.#values()) {
      seen += count;
      if (seen >= wanted) return Math.min(Math.round(value), this.max);
    }
    return 0;
  }

  /** Returns the sum of what each number exceeds the limit by. */
  excessOver(limit: number): number {
    let excess = 0;
    for (const [value, count] of this.#values()) {
      if (value > limit) excess += (value - limit) * count;
    }
    return Math.round(excess);
  }

  /** Each number, or the mean of a range, in ascending order, and how often it occurs. */
  *#values(): Generator<readonly [value: number, count: number]> {
    for (let value = 0; value <= EXACT; value++) {
      const count = this.#exact[value] as number;
      if (count > 0) yield [value, count];
    }
    for (let range = 0; range < RANGES; range++) {
      const count = this.#ranges[range] as number;
      if (count > 0) yield [(this.#sums[range] as number) / count, count];
    }
  }
}

function rangeOf(value: number): number {
  const exponent = 31 - Math.clz32(value);
  const fraction = value / 2 ** exponent - 1;
  return (
    (exponent - FIRST_EXPONENT) * RANGES_PER_DOUBLING + Math.floor(fraction * RANGES_PER_DOUBLING)
  );
}

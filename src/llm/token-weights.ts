import type { TokenCounts, TokenKind } from "./token-counts.ts";

/**
 * The cost of one token of each kind. The counts multiplied by these weights are added, and the sum is
 * rounded up to a whole number.
 */
export interface TokenWeights {
  /**
   * The cost of a token of the prompt that was not in the provider's cache.
   *
   * @default 1
   */
  readonly input?: number | undefined;
  /**
   * The cost of a token of the answer. Thoughts are part of the answer.
   *
   * @default 1
   * @example 5
   */
  readonly output?: number | undefined;
  /**
   * The cost of a token of the prompt that the provider read from its cache.
   *
   * @default the cost of an input token
   * @example 0.1
   */
  readonly cacheRead?: number | undefined;
  /**
   * The cost of a token of the prompt that the provider wrote to its cache.
   *
   * @default the cost of an input token
   * @example 1.25
   */
  readonly cacheWrite?: number | undefined;
}

/** The names of all kinds, in the order of {@link TokenWeights}. */
const KINDS: readonly TokenKind[] = ["input", "output", "cacheRead", "cacheWrite"];
/** The highest weight. `MAX_TOKENS` multiplied by this weight is still a safe integer. */
const MAX_WEIGHT = 1_000_000;

/**
 * Returns a function that computes the cost of tokens.
 *
 * @throws TypeError if a weight is not a number from 0 to 1000000, or if a kind does not exist
 */
export function createTokenCost(
  weights: TokenWeights = {},
): (counts: Partial<TokenCounts>) => number {
  for (const [kind, weight] of Object.entries(weights)) {
    if (!KINDS.includes(kind as TokenKind)) {
      throw new TypeError(`weights.${kind}: unknown; the weights are ${KINDS.join(", ")}`);
    }
    const isWeight = typeof weight === "number" && weight >= 0 && weight <= MAX_WEIGHT;
    if (weight !== undefined && !isWeight) {
      throw new TypeError(`weights.${kind}: must be a number from 0 to ${MAX_WEIGHT}`);
    }
  }
  const { input = 1, output = 1, cacheRead = input, cacheWrite = input } = weights;
  return (counts) => {
    const cost =
      input * (counts.input ?? 0) +
      output * (counts.output ?? 0) +
      cacheRead * (counts.cacheRead ?? 0) +
      cacheWrite * (counts.cacheWrite ?? 0);
    // 30 tokens of 0.1 are 3.0000000000000004, which must not become 4.
    return Math.ceil(Number(cost.toPrecision(15)));
  };
}

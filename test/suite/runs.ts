import { inject } from "vitest";
import type {} from "../../dev/provided.ts";
import { randomOf } from "./random.ts";

const { isLong, seed } = inject("propertyTests");

/** The seed of all property tests. The run prints the seed, and WEIR_TEST_SEED sets it. */
export const SEED = seed;

/** Whether all cases run, as in `npm run test:long`. */
export const IS_LONG = isLong;

/** Returns a tenth of a number of random cases, or the whole number in `npm run test:long`. */
export function runs(cases: number): number {
  return isLong ? cases : Math.ceil(cases / 10);
}

/** Returns the parameters of fast-check for a property with this number of cases in a long run. */
export function propertyRuns(cases: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: runs(cases), seed };
}

/** Draws a tenth of these cases by {@link SEED}, or returns all of them in `npm run test:long`. */
export function drawn<Case>(cases: readonly Case[]): readonly Case[] {
  if (isLong) return cases;
  const random = randomOf(seed);
  const left = [...cases];
  return Array.from({ length: runs(cases.length) }, () => {
    return left.splice(random(left.length), 1)[0] as Case;
  });
}

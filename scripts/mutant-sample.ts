/**
 * The plugin of Stryker for `npm run mutants -- --sample`. Stryker tests a mutant only if every checker accepts it. So
 * this checker rejects each mutant outside the sample.
 */
import { createHash } from "node:crypto";

/** The variable of the environment with the size and the seed of the sample, such as `40:7`. */
export const SAMPLE = "WEIR_MUTANTS";

type Mutant = { readonly id: string };

/** Returns the mutants in a random order that depends only on the seed and on the set of mutants. */
export function shuffled<Each extends Mutant>(mutants: readonly Each[], seed: number): Each[] {
  const rank = ({ id }: Mutant) => createHash("sha256").update(`${seed}:${id}`).digest("hex");
  return mutants
    .map((mutant) => ({ mutant, rank: rank(mutant) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ mutant }) => mutant);
}

function sampleChecker() {
  const [size, seed] = (process.env[SAMPLE] ?? "Infinity:1").split(":").map(Number);
  const sample = new Set<string>();
  return {
    async init() {},
    // Stryker passes all mutants that a test reaches, in one call.
    async group(mutants: readonly Mutant[]) {
      for (const { id } of shuffled(mutants, seed as number).slice(0, size)) sample.add(id);
      return mutants.map(({ id }) => [id]);
    },
    async check(mutants: readonly Mutant[]) {
      const resultOf = ({ id }: Mutant) =>
        sample.has(id) ? { status: "passed" } : { status: "compileError", reason: "not sampled" };
      return Object.fromEntries(mutants.map((mutant) => [mutant.id, resultOf(mutant)]));
    },
  };
}

export const strykerPlugins = [{ kind: "Checker", name: "sample", factory: sampleChecker }];

/**
 * The maximum time that a request waits for its shadow rules after its enforced rules are ready, in
 * milliseconds. Hashing a key takes less time than this. A custom function that calls another
 * service takes longer.
 */
const SHADOW_GRACE_MS = 2;

/**
 * Collects the applied rules of a request. Shadow rules delay the enforced rules by at most
 * `SHADOW_GRACE_MS`, and errors of shadow rules do not affect the enforced rules.
 *
 * @param results the result of each rule, in the order of the rules
 * @param isShadow whether the rule at an index is in shadow mode
 * @param pending returns a substitute for the result of a shadow rule that is not ready in time
 */
export async function collectWithinGrace<Applied>(
  results: readonly Promise<Applied[]>[],
  isShadow: (index: number) => boolean,
  pending: (index: number, later: Promise<Applied[]>) => Applied,
): Promise<Applied[]> {
  const readyShadow: Applied[][] = [];
  const shadow = results.map(async (result, index) => {
    if (isShadow(index)) readyShadow[index] = await result;
  });
  const allShadow = Promise.allSettled(shadow);
  const enforced = await Promise.all(results.map((each, index) => (isShadow(index) ? [] : each)));
  const { promise: graceOver, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, SHADOW_GRACE_MS);
  await Promise.race([allShadow, graceOver]);
  clearTimeout(timer);
  return results.flatMap((later, index) => {
    if (!isShadow(index)) return enforced[index] as Applied[];
    return readyShadow[index] ?? pending(index, later);
  });
}

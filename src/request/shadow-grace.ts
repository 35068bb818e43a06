import type { Mode } from "../config/outcome.ts";

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
 * @param modeOf returns the mode of the rule at an index
 * @param pending returns a substitute for the result of a shadow rule that is not ready in time
 * @param onWait called with the time for which the enforced rules have waited for rules with the
 * mode `mark`, in milliseconds
 */
export async function collectWithinGrace<Applied>(
  results: readonly Promise<Applied[]>[],
  modeOf: (index: number) => Mode,
  pending: (index: number, later: Promise<Applied[]>) => Applied,
  onWait: (waitedMs: number) => void,
): Promise<Applied[]> {
  const isShadow = (_: unknown, index: number) => modeOf(index) === "shadow";
  const readyShadow: Applied[][] = [];
  const shadow = results.map(async (result, index) => {
    if (isShadow(result, index)) readyShadow[index] = await result;
  });
  const allShadow = Promise.allSettled(shadow);
  let readyAt = Number.POSITIVE_INFINITY;
  Promise.all(results.filter((_, index) => modeOf(index) === "enforce")).then(
    () => (readyAt = Date.now()),
    () => {},
  );
  const others = await Promise.all(
    results.map((each, index) => (isShadow(each, index) ? [] : each)),
  );
  onWait(Math.max(0, Date.now() - readyAt));
  if (!results.some(isShadow)) return others.flat();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const graceOver = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, SHADOW_GRACE_MS);
  });
  await Promise.race([allShadow, graceOver]);
  clearTimeout(timer as ReturnType<typeof setTimeout>);
  return results.flatMap((later, index) => {
    if (!isShadow(later, index)) return others[index] as Applied[];
    return readyShadow[index] ?? pending(index, later);
  });
}

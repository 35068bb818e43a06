/** The first digits of numbers that are easy to remember, in ascending order. */
const DIGITS = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100];

/** Rounds a limit up to a number that is easy to remember. A limit of up to 10 stays as it is. */
export function kindLimit(limit: number): number {
  if (limit <= 10) return limit;
  let factor = 1;
  while (factor * 100 < limit) factor *= 10;
  const digits = DIGITS.find((each) => each * factor >= limit) ?? 100;
  return digits * factor;
}

/**
 * Returns the middle value or, for an even number of values, the mean of the two middle values.
 *
 * @throws {RangeError} when `values` is empty
 */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError("An empty list has no median.");
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

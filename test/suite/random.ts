/**
 * Returns a function that generates whole numbers of at least 0 and below a bound. The same seed
 * gives the same numbers.
 */
export function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

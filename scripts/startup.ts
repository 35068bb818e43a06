/** What is read of a .cpuprofile, as DevTools and `wrangler check startup` write it. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { functionName: string } }[];
  /** The id of the node that ran at each sample. */
  readonly samples: readonly number[];
  /** Before each sample, since the one before it, in microseconds. */
  readonly timeDeltas: readonly number[];
}

/**
 * How long the profile's thread was at work, in milliseconds: all of it but `(idle)`. That is the
 * "Active" that wrangler prints, which includes what workerd itself does to load a Worker.
 */
export function activeMs({ nodes, samples, timeDeltas }: CpuProfile): number {
  const idle = nodes.find(({ callFrame }) => callFrame.functionName === "(idle)")?.id;
  const busy = timeDeltas.filter((_, index) => samples[index] !== idle);
  return busy.reduce((sum, delta) => sum + delta, 0) / 1000;
}

/**
 * The least of a few measurements, for on a busy machine each holds what others took of the time.
 * One that is small enough ends them.
 */
export function leastOf(attempts: number, enough: number, measure: () => number): number {
  let least = measure();
  for (let done = 1; done < attempts && least > enough; done++) {
    least = Math.min(least, measure());
  }
  return least;
}

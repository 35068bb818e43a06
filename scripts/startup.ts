/** The fields that this file reads from a .cpuprofile of DevTools or `wrangler check startup`. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { functionName: string } }[];
  /** The id of the active node at each sample. */
  readonly samples: readonly number[];
  /** The time between each sample and the one before it, in microseconds. */
  readonly timeDeltas: readonly number[];
}

/**
 * Returns how long the profiled thread was active, in milliseconds: the time of all samples except `(idle)`. wrangler
 * prints this sum as "Active". It includes workerd's own work to load a Worker.
 */
export function activeMs({ nodes, samples, timeDeltas }: CpuProfile): number {
  const idle = nodes.find(({ callFrame }) => callFrame.functionName === "(idle)")?.id;
  const busy = timeDeltas.filter((_, index) => samples[index] !== idle);
  return busy.reduce((sum, delta) => sum + delta, 0) / 1000;
}

/**
 * Returns the smallest of several measurements, because on a busy machine each measurement also contains time that
 * other processes took.
 *
 * @param attempts the maximum number of measurements
 * @param enough a measurement up to this value is the last one
 */
export function leastOf(attempts: number, enough: number, measure: () => number): number {
  let least = measure();
  for (let done = 1; done < attempts && least > enough; done++) {
    least = Math.min(least, measure());
  }
  return least;
}

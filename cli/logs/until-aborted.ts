/** How often the event loop gets a turn, in milliseconds, so that it can handle signals and draw the progress. */
const TURN_MS = 50;

/**
 * Passes on the values of an iteration until a signal is aborted, even while the next value does not come, as from
 * a standard input without an end.
 */
export async function* untilAborted<Value>(
  values: AsyncIterable<Value>,
  signal: AbortSignal,
): AsyncGenerator<Value, void, undefined> {
  const iterator = values[Symbol.asyncIterator]();
  let turnAt = performance.now();
  try {
    while (!signal.aborted) {
      const next = await beforeAbort(iterator.next(), { signal });
      if (next === undefined || next.done) return;
      yield next.value;
      if (performance.now() - turnAt < TURN_MS) continue;
      await new Promise((turn) => setImmediate(turn));
      turnAt = performance.now();
    }
  } finally {
    // A generator closes only after its next value, which may never come.
    const closed = iterator.return?.();
    if (signal.aborted) closed?.catch(() => {});
    else await closed;
  }
}

/**
 * Waits for a promise until a signal is aborted, or until a time has passed. `Promise.race` would keep one callback
 * for each promise.
 *
 * @returns undefined if the signal or the time comes first
 */
export function beforeAbort<Value>(
  promise: Promise<Value>,
  { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const timer = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs);
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    });
  });
}

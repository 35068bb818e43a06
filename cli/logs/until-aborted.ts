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
  while (!signal.aborted) {
    const next = await nextOrAborted(iterator, signal);
    if (next === undefined || next.done) return;
    yield next.value;
    if (performance.now() - turnAt < TURN_MS) continue;
    await new Promise((turn) => setImmediate(turn));
    turnAt = performance.now();
  }
}

/** Returns undefined if the signal is aborted first. `Promise.race` would keep one callback for each value. */
function nextOrAborted<Value>(
  iterator: AsyncIterator<Value>,
  signal: AbortSignal,
): Promise<IteratorResult<Value> | undefined> {
  return new Promise((resolve, reject) => {
    const abort = () => resolve(undefined);
    signal.addEventListener("abort", abort, { once: true });
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

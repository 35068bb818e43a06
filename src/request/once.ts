/**
 * Returns a function that starts a task at the first call with a name. Later calls with this name
 * return the promise of the first call. Each request needs its own function, because a request must
 * not wait for another request's promise.
 */
export function createOnce<Result>(): (
  name: string,
  start: () => Promise<Result>,
) => Promise<Result> {
  const started = new Map<string, Promise<Result>>();
  return (name, start) => {
    const result = started.get(name) ?? start();
    started.set(name, result);
    return result;
  };
}

/**
 * Returns a promise that another request may resolve, with its functions.
 *
 * The runtime marks a promise with the request that has made it, and continues this request in its own context. But
 * when V8 has optimized a function, the `new Promise` in it makes promises without a mark. A request that awaits one
 * of them goes on in the context of the request that resolves it, where it may not use its own streams, and fails.
 * `Promise.withResolvers` always marks.
 */
export function sharedPromise<Value>(): PromiseWithResolvers<Value> {
  // `weir doctor` and programs may run in Node 20, which has no Promise.withResolvers, but no such contexts either.
  return Promise.withResolvers?.<Value>() ?? ownPromise();
}

function ownPromise<Value>(): PromiseWithResolvers<Value> {
  let resolve!: (value: Value | PromiseLike<Value>) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

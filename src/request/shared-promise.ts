/** A promise, with the functions that settle it. */
export interface SharedPromise<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (reason: unknown) => void;
}

/** `weir doctor` and programs may run in Node 20, which has no `Promise.withResolvers`, but no contexts either. */
const promises: PromiseConstructor & { withResolvers?<Value>(): SharedPromise<Value> } = Promise;

/**
 * Returns a promise that another request may settle.
 *
 * The runtime marks a promise with the request that has made it, and continues this request in its own context. But
 * when V8 has optimized a function, the `new Promise` in it makes promises without a mark. A request that awaits one
 * of them goes on in the context of the request that settles it, where it may not use its own streams, and fails.
 * `Promise.withResolvers` always marks.
 */
export function sharedPromise<Value>(): SharedPromise<Value> {
  return promises.withResolvers?.<Value>() ?? unmarked();
}

function unmarked<Value>(): SharedPromise<Value> {
  let resolve!: (value: Value) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

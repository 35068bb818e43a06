/** Does something around a call of a store, such as limiting its time. */
export type AroundCall = <Result>(call: () => Promise<Result>, name: string) => Promise<Result>;

/** Wraps the calls of a store. The result does not decide from memory. */
export function aroundCalls<Calls extends object>(store: Calls, around: AroundCall): Calls {
  const calls = Object.entries(store).filter(([name]) => name !== "denialOf");
  return Object.fromEntries(
    calls.map(([name, call]) => [name, (...args: unknown[]) => around(() => call(...args), name)]),
  ) as Calls;
}

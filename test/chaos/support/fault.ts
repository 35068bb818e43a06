/**
 * A fault of a store, with a function that causes it in an environment, and a function that ends
 * it.
 */
export interface Fault<Environment> {
  /** A description of the fault. It completes the words "a store that …". */
  readonly does: string;
  /** The cause in the log; undefined if requests are still decided. */
  readonly cause: string | undefined;
  begin(environment: Environment): unknown;
  end(environment: Environment): unknown;
}

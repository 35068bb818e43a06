/** A fault of a store, with functions that cause it in an environment and end it. */
export interface Fault<Environment> {
  /** A description of the fault. It completes the words "a store that …". */
  readonly does: string;
  /** The cause in the log; undefined if requests are still decided. */
  readonly cause: string | undefined;
  begin(environment: Environment): unknown;
  end(environment: Environment): unknown;
}

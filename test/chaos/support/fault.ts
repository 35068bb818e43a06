/** A fault of a store, and how to cause it on a environment. */
export interface Fault<Environment> {
  /** What the store does, as the end of "a store that …". */
  readonly does: string;
  /** The cause in the log; undefined if requests are still decided. */
  readonly cause: string | undefined;
  begin(environment: Environment): unknown;
  end(environment: Environment): unknown;
}

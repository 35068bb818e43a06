/**
 * The reason why a store could not decide.
 *
 * - `timeout`: no answer within the deadline
 * - `unreachable`: no connection, or the connection broke
 * - `error-reply`: the store answered with an error, for example because of a wrong token, an
 *   exhausted quota of the database, or a failed script
 * - `invalid-reply`: the store's answer does not have the expected form
 * - `memory-full`: the store has no space for a new counter
 * - `circuit-open`: the store has failed several times in a row or has stopped answering, so Weir
 *   did not call it or stopped waiting for its answer
 * - `misconfigured`: the store could not be created
 */
export type StoreFailure = (typeof STORE_FAILURES)[number];

export const STORE_FAILURES = [
  "timeout",
  "unreachable",
  "error-reply",
  "invalid-reply",
  "memory-full",
  "circuit-open",
  "misconfigured",
] as const;

/** Thrown by a store that could not decide. The message contains neither keys nor secrets. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly failure: StoreFailure;
  /** Whether the call missed its deadline because the isolate was busy. The store may be well. */
  readonly wasBusy: boolean;

  constructor(failure: StoreFailure, detail: string, { wasBusy = false } = {}) {
    super(detail);
    this.failure = failure;
    this.wasBusy = wasBusy;
  }
}

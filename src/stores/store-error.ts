/**
 * Why a store could not decide.
 *
 * - `timeout`: no answer within the deadline
 * - `unreachable`: no connection, or it broke
 * - `error-reply`: it answered with an error (a wrong token, a quota reached, a failed script)
 * - `invalid-reply`: it answered with something else than was asked for
 * - `memory-full`: it has no room for one more counter
 * - `circuit-open`: it was not asked, for it has failed a few times in a row
 * - `misconfigured`: it could not be set up
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

/** Thrown by a store that could not decide. Its message holds no key and no secret. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, detail: string) {
    super(detail);
    this.failure = failure;
  }
}

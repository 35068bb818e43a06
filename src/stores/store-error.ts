/**
 * Why a store could not decide.
 *
 * - `late`: no answer within the deadline
 * - `unreachable`: no connection, or it broke
 * - `refused`: it answered with an error (a wrong token, a quota reached, a failed script)
 * - `nonsense`: it answered with something else than was asked for
 * - `full`: it has no room for one more counter
 * - `resting`: it was not asked, for it has failed a few times in a row
 * - `misconfigured`: it could not be set up
 */
export type StoreFailure = (typeof STORE_FAILURES)[number];

export const STORE_FAILURES = [
  "late",
  "unreachable",
  "refused",
  "nonsense",
  "full",
  "resting",
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

/**
 * What the message says, for `from` to read where the message is all that arrives. Reservations of a
 * tiny limit reach so far that JavaScript writes the number as 3e+24.
 */
const MESSAGE =
  /^(?:RateLimitError: )?The rule "([a-z0-9_-]+)" is over its limit for another (\d+(?:\.\d+)?(?:e\+\d+)?) ms\.$/;

/**
 * Thrown by `WeirService` when it is asked to throw and a client is over the limit.
 *
 * An error that crosses a service binding is no longer of its class, so `instanceof` is of no use to
 * the caller: `RateLimitError.from` is.
 */
export class RateLimitError extends Error {
  override readonly name = "RateLimitError";
  /** The rule that had no room. */
  readonly rule: string;
  /** Milliseconds until it has. */
  readonly retryAfterMs: number;

  constructor(rule: string, retryAfterMs: number) {
    const wholeMs = Math.ceil(retryAfterMs);
    super(`The rule "${rule}" is over its limit for another ${wholeMs} ms.`);
    this.rule = rule;
    this.retryAfterMs = wholeMs;
  }

  /**
   * Recognizes the error, here and on the other side of a service binding.
   *
   * It is read from its message: without the compatibility flag `enhanced_error_serialization`,
   * which older compatibility dates leave off, that is all that RPC carries.
   *
   * @example
   * catch (error) {
   *   const limited = RateLimitError.from(error);
   *   if (!limited) throw error;
   *   return queueFor(limited.retryAfterMs);
   * }
   *
   * @returns undefined for every other error
   */
  static from(error: unknown): RateLimitError | undefined {
    if (error instanceof RateLimitError) return error;
    const [, rule, retryAfterMs] = MESSAGE.exec(error instanceof Error ? error.message : "") ?? [];
    return rule === undefined ? undefined : new RateLimitError(rule, Number(retryAfterMs));
  }
}

/**
 * Matches the message of the error. `RateLimitError.from` reads the fields from the message.
 * Reservations of a very small limit can last so long that JavaScript writes the number with an
 * exponent, such as 3e+24.
 */
const MESSAGE =
  /^(?:RateLimitError: )?The rule "([a-z0-9_-]+)" is over its limit for another (\d+(?:\.\d+)?(?:e\+\d+)?) ms\.$/;

/**
 * Thrown by the methods of `WeirService` with the option `throws`, if a client is over the limit.
 *
 * An error that crosses a service binding loses its class, so `instanceof` does not recognize it in
 * the calling Worker. `RateLimitError.from` recognizes it.
 */
export class RateLimitError extends Error {
  override readonly name = "RateLimitError";
  /** The name of the rule that denied the call. */
  readonly rule: string;
  /**
   * Milliseconds that the caller should wait before it makes the same call again; a whole number.
   */
  readonly retryAfterMs: number;

  /** @param retryAfterMs the wait in milliseconds, which is rounded up to a whole number */
  constructor(rule: string, retryAfterMs: number) {
    const wholeMs = Math.ceil(retryAfterMs);
    super(`The rule "${rule}" is over its limit for another ${wholeMs} ms.`);
    this.rule = rule;
    this.retryAfterMs = wholeMs;
  }

  /**
   * Recognizes the error, even after it has crossed a service binding.
   *
   * This method reads the error's message, because RPC transfers the fields of an error only if the
   * compatibility flag `enhanced_error_serialization` is set. Older compatibility dates do not
   * include this flag.
   *
   * @example
   * catch (error) {
   *   const limited = RateLimitError.from(error);
   *   if (!limited) throw error;
   *   return queueFor(limited.retryAfterMs);
   * }
   *
   * @returns undefined if the error is not a `RateLimitError`
   */
  static from(error: unknown): RateLimitError | undefined {
    if (error instanceof RateLimitError) return error;
    const [, rule, retryAfterMs] = MESSAGE.exec(error instanceof Error ? error.message : "") ?? [];
    return rule === undefined ? undefined : new RateLimitError(rule, Number(retryAfterMs));
  }
}

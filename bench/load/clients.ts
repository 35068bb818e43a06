/** A request that the load generator sends. */
export interface OutgoingRequest {
  readonly client: string;
  readonly path: string;
}

/** The path that every subject limits. */
export const LIMITED_PATH = "/limited";

const MAX_ROUNDS = 100;

/**
 * Returns a client's IPv4 address, which every subject uses as the key. Each round has clients of
 * its own, so it starts without counters in the store and without leases or denials in memory.
 *
 * @param round 0 to 99
 * @param index 0 to 16,777,215
 * @throws {RangeError} when `round` is 100 or more
 */
export function clientAddress(round: number, index: number): string {
  if (round >= MAX_ROUNDS)
    throw new RangeError(`Rounds 0 to 99 have addresses, round ${round} has none.`);
  return `${11 + round}.${index >>> 16}.${(index >>> 8) & 255}.${index & 255}`;
}

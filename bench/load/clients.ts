/** A request to be sent: who asks, and on which path. */
export type Outgoing = { client: string; path: string };

/** The path that all subjects limit, and one that they only forward. */
export const LIMITED_PATH = "/limited";
export const FREE_PATH = "/free";

const MAX_ROUNDS = 100;

/**
 * A client's IPv4 address, by which all subjects count. Rounds have clients of their own, so that
 * each begins with nothing counted and nothing remembered.
 *
 * @param round 0 to 99
 * @param index 0 to 16,777,215
 */
export function clientAddress(round: number, index: number): string {
  if (round >= MAX_ROUNDS) throw new RangeError(`no addresses for round ${round}`);
  return `${11 + round}.${index >>> 16}.${(index >>> 8) & 255}.${index & 255}`;
}

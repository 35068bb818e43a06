import { banKeys } from "../../src/engine/bans.ts";
import type { Demand, GroupVerdict } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";
import { verdictOf } from "./verdict.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** The next full hour. It is in the future, because a store may remove rows of the past. */
export const NOW = Math.ceil(Date.now() / HOUR) * HOUR;

export type Driver = ReturnType<typeof driverOf>;

export interface ExpiryOptions {
  /**
   * Lets keys expire earlier by a number of milliseconds. Pass this function if keys expire by the
   * store's own clock, as in Redis, because they then stay when a test gives the store a later time.
   */
  readonly ageKeys?: ((keys: readonly string[], ms: number) => Promise<void>) | undefined;
}

/** Returns functions that call the store with one group of counters, at the time `now`. */
export function driverOf(store: Store, { ageKeys }: ExpiryOptions = {}) {
  async function decide(counters: readonly Demand[], now = NOW) {
    const { groups } = await verdictOf(store.decide([counters], now));
    return groups[0] as GroupVerdict;
  }

  /** Sends `attempts` requests, one after the other. @returns the number that is admitted */
  async function admitted(counters: readonly Demand[], attempts: number, now = NOW) {
    let count = 0;
    for (let attempt = 0; attempt < attempts; attempt++) {
      if ((await decide(counters, now)).admitted) count++;
    }
    return count;
  }

  /** Reads counters with a decision that costs 0. @returns the quota used of each counter */
  async function used(counters: readonly Demand[], now = NOW) {
    const { tallies } = await decide(
      counters.map((each) => ({ ...each, cost: 0 })),
      now,
    );
    return tallies.map(({ count }) => count);
  }

  /** Lets the bans of these counters, and the memory of their strikes, become older. @returns the time then */
  async function passTime(counters: readonly Demand[], ms: number): Promise<number> {
    await ageKeys?.(counters.flatMap(banKeys), ms);
    return NOW + ms;
  }

  return { store, decide, admitted, used, passTime, clockIsOurs: ageKeys === undefined };
}

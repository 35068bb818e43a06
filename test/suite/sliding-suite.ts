import { describe, expect, it } from "vitest";
import type { Demand, Tally } from "../../src/engine/counter.ts";
import { quotaAfterMs } from "../../src/engine/fixed-window.ts";
import type { Store } from "../../src/stores/store.ts";
import { bans, counter } from "./counters.ts";
import { driverOf, NOW } from "./driver.ts";
import { randomOf } from "./random.ts";
import { runs, SEED } from "./runs.ts";

/** Returns a counter of a limit in any minute, counted in sub-windows. */
function sliding(fields: Partial<Demand> = {}, subWindows = 10): Demand {
  return counter({ subWindows, windowMs: 60_000 / subWindows, ...fields });
}

/** A charge, as somebody would count it who knows nothing of rings. */
export interface Charge {
  readonly at: number;
  readonly cost: number;
}

/**
 * Returns the largest sum of charges in any interval of this length, including both of its ends.
 *
 * @param charges in the order of their times
 */
export function mostInAnyInterval(charges: readonly Charge[], lengthMs: number): number {
  let [most, sum, first] = [0, 0, 0];
  for (const { at: end, cost } of charges) {
    sum += cost;
    for (let each = charges[first]; each && each.at < end - lengthMs; each = charges[++first]) {
      sum -= each.cost;
    }
    most = Math.max(most, sum);
  }
  return most;
}

/** A sliding window, by the definition: every charge in the current sub-window and the `subWindows` before it counts. */
class Model {
  readonly #counter: Demand;
  readonly #charges: { window: number; cost: number }[] = [];
  window = Number.NEGATIVE_INFINITY;

  constructor(each: Demand) {
    this.#counter = each;
  }

  get #counted() {
    const { subWindows = 0 } = this.#counter;
    return this.#charges.filter(({ window }) => window >= this.window - subWindows);
  }

  at(now: number): this {
    const window = Math.floor((now - this.#counter.offsetMs) / this.#counter.windowMs);
    const isStored = this.#charges.length > 0;
    this.window = isStored ? Math.max(window, this.#lastStored) : window;
    return this;
  }

  #lastStored = Number.NEGATIVE_INFINITY;

  get total(): number {
    return this.#counted.reduce((sum, { cost }) => sum + cost, 0);
  }

  charge(cost: number, window = this.window): void {
    this.#charges.push({ window, cost });
    this.#lastStored = this.window;
  }

  /** Takes quota back, from the newest sub-windows or from one of them. */
  refund(quota: number, window?: number): void {
    let left = quota;
    for (const each of this.#counted.sort((one, other) => other.window - one.window)) {
      if (window !== undefined && each.window !== window) continue;
      const taken = Math.min(left, each.cost);
      each.cost -= taken;
      left -= taken;
      if (taken > 0) this.#lastStored = this.window;
    }
  }

  isCounted(window: number): boolean {
    const { subWindows = 0 } = this.#counter;
    return window <= this.window && window >= this.window - subWindows;
  }

  reset(): void {
    this.#charges.length = 0;
  }

  /** Returns when the total falls to a count, in milliseconds since the Unix epoch. */
  timeOf(most: number): number {
    const { subWindows = 0, windowMs, offsetMs } = this.#counter;
    for (let passed = 0; passed <= subWindows; passed++) {
      const left = this.#counted.filter(
        ({ window }) => window >= this.window + passed - subWindows,
      );
      const sum = left.reduce((total, { cost }) => total + cost, 0);
      if (sum <= most) return (this.window + passed) * windowMs + offsetMs;
    }
    return (this.window + subWindows + 1) * windowMs + offsetMs;
  }
}

/** Tests that a store counts sliding windows. The suite passes the time to the store. */
export function slidingSuite(createStore: () => Store, sequences: number): void {
  const store = createStore();
  const { decide, admitted, used } = driverOf(store);
  const waitOf = (each: Demand, tally: Tally, now: number) =>
    quotaAfterMs(each, tally, each.ceiling, now);

  describe("sliding windows", () => {
    it("admit five logins around a boundary where a fixed window admits ten", async () => {
      for (const [each, total] of [
        [sliding(), 5],
        [counter(), 10],
      ] as const) {
        const before = await admitted([each], 5, NOW + 58_000);
        expect(before + (await admitted([each], 5, NOW + 62_000))).toBe(total);
      }
    });

    it.each([2, 3, 10, 60])("count the oldest of %i sub-windows whole", async (subWindows) => {
      const each = sliding({}, subWindows);
      const lastOfFirst = NOW + each.windowMs - 1;
      expect(await admitted([each], 6, lastOfFirst)).toBe(5);
      const freeAt = NOW + (subWindows + 1) * each.windowMs;
      expect(await admitted([each], 1, freeAt - 1)).toBe(0);
      expect(await used([each], freeAt - 1)).toEqual([5]);
      expect(await used([each], freeAt)).toEqual([0]);
      expect(await admitted([each], 6, freeAt)).toBe(5);
    });

    it("never deny a client that sends evenly at the guaranteed rate", async () => {
      // 11 sub-windows of 6 s count at most 60 requests, one in each 1.1 s.
      const each = sliding({ limit: 60 });
      for (let at = 0; at < 180_000; at += 1100) {
        expect((await decide([each], NOW + at)).admitted, `after ${at} ms`).toBe(true);
      }
    });

    // So an interval that is shorter by the difference of two clocks never holds more than the limit, and no longer one
    // can be promised.
    it("count in one counter by two clocks, of which one is two seconds ahead", async () => {
      const each = sliding();
      // The last millisecond of a sub-window, by the slower clock.
      expect(await admitted([each], 6, NOW + each.windowMs - 1)).toBe(5);
      const shorterMs = 60_000 - 2000;
      const at = NOW + each.windowMs - 1 + shorterMs;
      expect(await admitted([each], 1, at + 2000)).toBe(0);
      expect(await admitted([each], 6, at + 1 + 2000)).toBe(5);
      // By the slower clock, the first charges still count, but the counter has left their sub-window.
      expect(await used([each], at + 1)).toEqual([5]);
    });

    it("charge a call that comes late in the sub-window of the calls before it", async () => {
      const each = sliding();
      expect(await admitted([each], 1, NOW + 60_000)).toBe(1);
      expect(await admitted([each], 5, NOW)).toBe(4);
      const freeAt = NOW + 60_000 + 11 * each.windowMs;
      expect(await used([each], freeAt - 1)).toEqual([5]);
      expect(await used([each], freeAt)).toEqual([0]);
    });

    it("give quota back in the sub-window of a reserve, or else the quota charged last", async () => {
      for (const [chargedIn, total] of [
        [NOW / 6000, 1],
        [undefined, 0],
      ] as const) {
        const each = sliding();
        expect(await admitted([each], 4)).toBe(4);
        expect(await admitted([each], 1, NOW + 54_000)).toBe(1);
        const refund = { ...each, cost: -1, ...(chargedIn !== undefined && { chargedIn }) };
        expect((await store.adjust([refund], NOW + 54_000))[0]?.count).toBe(4);
        expect(await used([each], NOW + 65_999)).toEqual([4]);
        expect(await used([each], NOW + 66_000)).toEqual([total]);
      }
    });

    it("charge a group as a whole, beside fixed windows", async () => {
      const identity = crypto.randomUUID();
      const group = [sliding({ identity }), counter({ identity, limit: 3 })];
      expect(await admitted(group, 5)).toBe(3);
      expect(await used(group)).toEqual([3, 3]);
      expect(await admitted(group, 5, NOW + 60_000)).toBe(2);
      expect(await used(group, NOW + 60_000)).toEqual([5, 2]);
    });

    it("ban like a fixed window", async () => {
      const each = sliding({ ban: bans(90_000) });
      expect(await admitted([each], 6)).toBe(5);
      const { tallies } = await decide([each], NOW + 1000);
      expect(tallies[0]?.banMs).toBeGreaterThan(80_000);
    });

    it("charge up to 2^53 - 1, and give back no more than was charged", async () => {
      const each = sliding({ limit: 10 });
      const adjusted = async (cost: number, now = NOW) =>
        (await store.adjust([{ ...each, cost }], now))[0]?.count;
      expect(await adjusted(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
      expect(await adjusted(5, NOW + 6000)).toBe(Number.MAX_SAFE_INTEGER);
      expect(await adjusted(-7, NOW + 6000)).toBe(Number.MAX_SAFE_INTEGER - 7);
      expect(await adjusted(-Number.MAX_SAFE_INTEGER, NOW + 6000)).toBe(0);
      expect(await admitted([each], 11, NOW + 6000)).toBe(10);
    });

    it("agree with their definition in random sequences", async () => {
      const random = randomOf(SEED);
      const pick = <Each>(...all: readonly Each[]) => all[random(all.length)] as Each;
      for (let sequence = 0; sequence < Math.max(3, runs(sequences) / 10); sequence++) {
        const subWindows = pick(2, 3, 10, 60);
        const limit = pick(1, 5, 40);
        const each = sliding({ limit, offsetMs: pick(0, 999) }, subWindows);
        const model = new Model(each);
        const charges: Charge[] = [];
        let isSettled = false;
        let now = NOW + random(60_000);
        const reserves: { window: number; cost: number }[] = [];
        for (let step = 0; step < 40; step++) {
          now += pick(0, 1, random(each.windowMs), each.windowMs, random(30_000), -random(5000));
          model.at(now);
          const cost = 1 + random(Math.min(4, limit));
          const operation = pick(
            "decide",
            "decide",
            "decide",
            "decide",
            "settle",
            "adjust",
            "reset",
          );
          if (operation === "decide") {
            const before = model.total;
            const verdict = await decide([{ ...each, cost }], now);
            const fits = before + cost <= limit;
            if (fits) model.charge(cost);
            const tally = verdict.tallies[0] as Tally;
            expect(verdict.admitted).toBe(fits);
            const needed = { ...each, cost };
            const isFree = model.total + cost <= limit;
            const waitMs = isFree ? 0 : model.timeOf(limit - cost) - now;
            if (tally.isUncertain) {
              // Others may have used quota since the denial that is remembered.
              expect(waitOf(needed, tally, now)).toBeGreaterThanOrEqual(waitMs);
              continue;
            }
            expect(waitOf(needed, tally, now)).toBe(waitMs);
            expect([tally.count, tally.ring?.window]).toEqual([model.total, model.window]);
            if (model.total > 0) expect(now + tally.resetMs).toBe(model.timeOf(model.total - 1));
            if (fits) reserves.push({ window: model.window, cost });
            if (fits) charges.push({ at: Math.max(now, charges.at(-1)?.at ?? now), cost });
          } else if (operation === "settle" && reserves.length > 0) {
            isSettled = true;
            const { window } = pick(...reserves);
            const change = random(9) - 4;
            const [tally] = await store.adjust([{ ...each, cost: change, chargedIn: window }], now);
            if (model.isCounted(window)) {
              if (change < 0) model.refund(-change, window);
              else if (change > 0) model.charge(change, window);
            }
            expect(tally?.count).toBe(model.total);
          } else if (operation === "adjust") {
            isSettled = true;
            const change = random(9) - 4;
            const [tally] = await store.adjust([{ ...each, cost: change }], now);
            if (change < 0) model.refund(-change);
            else if (change > 0) model.charge(change);
            expect(tally?.count).toBe(model.total);
          } else if (operation === "reset") {
            if (random(4) > 0) continue;
            isSettled = true;
            await store.reset([each], now);
            model.reset();
          }
        }
        if (!isSettled) expect(mostInAnyInterval(charges, 60_000)).toBeLessThanOrEqual(limit);
      }
    });

    it("never admit more than the limit in any interval, and are never early with a retry", async () => {
      const random = randomOf(SEED + 1);
      for (let sequence = 0; sequence < Math.max(2, runs(sequences) / 40); sequence++) {
        const limit = 1 + random(12);
        const each = sliding({ limit }, [2, 8, 10, 60][random(4)]);
        const charges: Charge[] = [];
        let now = NOW + random(60_000);
        for (let step = 0; step < 60; step++) {
          now += random(4) === 0 ? random(40_000) : random(3000);
          const cost = 1 + random(Math.min(3, limit));
          const demand = { ...each, cost };
          const verdict = await decide([demand], now);
          if (!verdict.admitted) {
            const retryAt = now + waitOf(demand, verdict.tallies[0] as Tally, now);
            const check = { ...demand, checkOnly: true };
            const isExact = !verdict.tallies[0]?.isUncertain;
            if (isExact) expect((await decide([check], retryAt - 1)).admitted).toBe(false);
            expect((await decide([check], retryAt)).admitted).toBe(true);
          } else charges.push({ at: now, cost });
        }
        expect(mostInAnyInterval(charges, 60_000)).toBeLessThanOrEqual(limit);
      }
    });
  });
}

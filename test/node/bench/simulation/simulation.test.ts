import { describe, expect, it } from "vitest";
import { emptyResult, type RunResult } from "../../../../bench/simulation/run-result.ts";
import { simulate } from "../../../../bench/simulation/simulation.ts";
import { constantTraffic, randomScenario, smallScenario } from "./fixtures.ts";

const SEEDS = 60;

/** Returns the figures that must always be 0. */
const violationsOf = ({ over, overdrawn, miscounted }: RunResult) => ({
  over,
  overdrawn,
  miscounted,
});

describe("simulated leases", () => {
  it("never exceed a limit with deaths, lost calls, reordered answers and wrong clocks", async () => {
    const totals = emptyResult();
    for (let seed = 0; seed < SEEDS; seed++) {
      const result = await simulate(randomScenario(seed), seed);
      const none = { over: 0, overdrawn: 0, miscounted: 0 };
      expect(violationsOf(result), `seed ${seed}`).toEqual(none);
      totals.admitted += result.admitted;
      totals.fromMemory += result.fromMemory;
      totals.lostWithIsolate += result.lostWithIsolate;
      totals.undecided += result.undecided;
      totals.returnedLeases += result.returnedLeases;
    }
    // The random scenarios must have enough of these events for the test to prove something.
    expect(totals.admitted).toBeGreaterThan(10_000);
    expect(totals.fromMemory).toBeGreaterThan(10_000);
    const { lostWithIsolate, undecided, returnedLeases } = totals;
    expect(Math.min(lostWithIsolate, undecided, returnedLeases)).toBeGreaterThan(10);
  });

  it("admit the full limit of a busy client on eight isolates", async () => {
    for (let seed = 0; seed < 5; seed++) {
      const { admitted, wronglyDenied } = await simulate(smallScenario({ isolates: 8 }), seed);
      expect(admitted).toBeGreaterThanOrEqual(150);
      expect(wronglyDenied).toBe(0);
    }
  });

  it("are not used after the end of their window", async () => {
    let afterWindow = 0;
    for (let seed = 0; seed < 20; seed++) {
      const far = smallScenario({ isolates: 4, limit: 100, windowMs: 5000, roundTripMs: 300 });
      const scenario = { ...far, traffic: constantTraffic(20, 50_000) };
      afterWindow += (await simulate(scenario, seed)).afterWindow;
    }
    expect(afterWindow).toBe(0);
  });

  it("need fewer calls than requests, and decide from memory without waiting", async () => {
    const { calls, offered, waits, fromMemory } = await simulate(smallScenario(), 1);
    expect(calls).toBeLessThan(offered / 2);
    expect(waits.filter((ms) => ms === 0)).toHaveLength(fromMemory);
  });

  it("lose only the quota in the memory of an isolate that dies", async () => {
    const dying = smallScenario({ limit: 100, deathsPerMinute: 10, isolates: 4 });
    const [alive, dead] = [
      await simulate(smallScenario({ limit: 100, isolates: 4 }), 1),
      await simulate(dying, 1),
    ];
    expect(alive.wronglyDeniedBy.dead).toBe(0);
    expect(dead.wronglyDenied).toBeGreaterThan(0);
    expect(dead.wronglyDeniedBy.dead).toBe(dead.wronglyDenied);
  });
});

describe("a simulation", () => {
  it("gives the same result for the same seed, and another result for another seed", async () => {
    const run = (seed: number) => simulate(randomScenario(3), seed);
    expect(await run(7)).toEqual(await run(7));
    expect(await run(7)).not.toEqual(await run(8));
  });

  it("restores the clock and the timers", async () => {
    const { now } = Date;
    const { setTimeout, clearTimeout } = globalThis;
    await simulate(smallScenario(), 1);
    expect(Date.now).toBe(now);
    expect(globalThis.setTimeout).toBe(setTimeout);
    expect(globalThis.clearTimeout).toBe(clearTimeout);
  });

  it("cannot run twice at the same time in one thread", async () => {
    const first = simulate(smallScenario(), 1);
    await expect(simulate(smallScenario(), 2)).rejects.toThrow("Another simulation");
    expect((await first).over).toBe(0);
  });

  it("lets requests wait only for the store", async () => {
    const { waits } = await simulate(smallScenario({ roundTripMs: 300 }), 1);
    const longest = waits.reduce((a, b) => Math.max(a, b));
    // 70 % of the round trip is constant. The rest is random, so answers overtake each other.
    expect(longest).toBeGreaterThan(0.7 * 300);
    expect(longest).toBeLessThan(1001);
  });
});

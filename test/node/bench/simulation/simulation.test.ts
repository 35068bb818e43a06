import { describe, expect, it } from "vitest";
import { type Figures, noFigures } from "../../../../bench/simulation/figures.ts";
import { simulate } from "../../../../bench/simulation/simulation.ts";
import { anyScenario, evenly, smallScenario } from "./scenarios.ts";

const SEEDS = 60;

/** What is wrong whenever it is not 0. */
const faultsOf = ({ over, overdrawn, miscounted }: Figures) => ({ over, overdrawn, miscounted });

describe("leases, simulated", () => {
  it("never exceed a limit, whatever dies, gets lost, overtakes or is late", async () => {
    const seen = noFigures();
    for (let seed = 0; seed < SEEDS; seed++) {
      const figures = await simulate(anyScenario(seed), seed);
      expect(faultsOf(figures), `seed ${seed}`).toEqual({ over: 0, overdrawn: 0, miscounted: 0 });
      for (const name of ["admitted", "fromMemory", "lost", "undecided", "givenBack"] as const) {
        seen[name] += figures[name];
      }
    }
    // It was worth trying: all of that has happened.
    expect(seen.admitted).toBeGreaterThan(10_000);
    expect(seen.fromMemory).toBeGreaterThan(10_000);
    expect(Math.min(seen.lost, seen.undecided, seen.givenBack)).toBeGreaterThan(10);
  }, 20_000);

  it("admit all that a busy client may have, on eight isolates", async () => {
    for (let seed = 0; seed < 5; seed++) {
      const { admitted, missed } = await simulate(smallScenario({ isolates: 8 }), seed);
      expect(admitted).toBeGreaterThanOrEqual(150);
      expect(missed).toBe(0);
    }
  });

  it("are not used after their window's end", async () => {
    let late = 0;
    for (let seed = 0; seed < 20; seed++) {
      const far = smallScenario({ isolates: 4, limit: 100, windowMs: 5000, roundTripMs: 300 });
      late += (await simulate({ ...far, traffic: evenly(20, 50_000) }, seed)).late;
    }
    expect(late).toBe(0);
  });

  it("cost fewer calls than requests, and no waiting from memory", async () => {
    const { calls, offered, waits, fromMemory } = await simulate(smallScenario(), 1);
    expect(calls).toBeLessThan(offered / 2);
    expect(waits.filter((ms) => ms === 0)).toHaveLength(fromMemory);
  });

  it("lose with an isolate what is in its memory, and no more", async () => {
    const dying = smallScenario({ limit: 100, deathsPerMinute: 10, isolates: 4 });
    const [alive, dead] = [
      await simulate(smallScenario({ limit: 100, isolates: 4 }), 1),
      await simulate(dying, 1),
    ];
    expect(alive.missedBy.dead).toBe(0);
    expect(dead.missed).toBeGreaterThan(0);
    expect(dead.missedBy.dead).toBe(dead.missed);
  });
});

describe("a simulation", () => {
  it("gives the same figures for the same seed, and others for another", async () => {
    const run = (seed: number) => simulate(anyScenario(3), seed);
    expect(await run(7)).toEqual(await run(7));
    expect(await run(7)).not.toEqual(await run(8));
  });

  it("leaves the clock and the timers as they were", async () => {
    const { now } = Date;
    const { setTimeout, clearTimeout } = globalThis;
    await simulate(smallScenario(), 1);
    expect(Date.now).toBe(now);
    expect(globalThis.setTimeout).toBe(setTimeout);
    expect(globalThis.clearTimeout).toBe(clearTimeout);
  });

  it("is the only one of its thread at a time", async () => {
    const first = simulate(smallScenario(), 1);
    await expect(simulate(smallScenario(), 2)).rejects.toThrow("another simulation");
    expect((await first).over).toBe(0);
  });

  it("loses time only where the store is asked", async () => {
    const { waits } = await simulate(smallScenario({ roundTripMs: 300 }), 1);
    const longest = waits.reduce((a, b) => Math.max(a, b));
    // 0.7 of the round trip is sure; with the rest, answers overtake each other.
    expect(longest).toBeGreaterThan(0.7 * 300);
    expect(longest).toBeLessThan(1001);
  });
});

import { describe, expect, it } from "vitest";
import {
  type FanInScenario,
  MAX_CALLS_PER_SECOND,
  simulateFanIn,
} from "../../../../bench/simulation/fan-in/fan-in.ts";

const SCENARIO: FanInScenario = {
  name: "test",
  isolates: 2000,
  locations: ["EU"],
  startWithinMs: 5000,
  meanLifeMs: Number.POSITIVE_INFINITY,
  objectLifeMs: Number.POSITIVE_INFINITY,
  durationMs: 45_000,
  seed: 7,
};

describe("the fan-in of sums", () => {
  it.each<Partial<FanInScenario> & { name: string }>([
    { name: "isolates of one location that a deploy starts" },
    { name: "isolates of all locations", locations: ["AF", "AN", "AS", "EU", "NA", "OC", "SA"] },
    { name: "isolates that live for 20 seconds", meanLifeMs: 20_000 },
  ])("gives no object more than 100 calls a second and loses nothing: $name", async (scenario) => {
    const result = await simulateFanIn({ ...SCENARIO, ...scenario });
    expect(Math.max(...Object.values(result.calls))).toBeLessThanOrEqual(MAX_CALLS_PER_SECOND);
    expect(result.counted).toBe(result.requests);
    // Isolates add at most ten seconds, so a change holds everywhere within 15 seconds.
    expect(result.oldestOverridesMs).toBeLessThan(2 * 2500 + 1000);
  });

  it("uses the global object alone for few isolates", async () => {
    const result = await simulateFanIn({ ...SCENARIO, isolates: 40, durationMs: 120_000 });
    expect(result.objects).toBe(1);
  });

  it("uses at most twice as many collectors in each location as its isolates need", async () => {
    const locations = ["AF", "AN", "AS", "EU", "NA", "OC", "SA", "XX"];
    const result = await simulateFanIn({
      ...SCENARIO,
      isolates: 1000,
      locations,
      durationMs: 130_000,
    });
    // The 125 isolates of a location need one collector. A number that is twice as large may stay.
    const [collectors, hubs, global] = [8 * 2, 8, 1];
    expect(result.objects).toBeLessThanOrEqual(collectors + hubs + global);
    expect(Math.max(...Object.values(result.calls))).toBeLessThanOrEqual(MAX_CALLS_PER_SECOND);
  });

  it("loses only the last seconds of collectors that end", async () => {
    const objectLifeMs = 30_000;
    const result = await simulateFanIn({ ...SCENARIO, objectLifeMs });
    const lostShare = (result.requests - result.counted) / result.requests;
    expect(lostShare).toBeLessThan((2 * 5000) / objectLifeMs);
  });
});

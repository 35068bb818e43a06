import { expect, it } from "vitest";
import { simulateFanIn } from "../../../../bench/simulation/fan-in.ts";

it.each([
  { isolates: 100, most: 100 },
  { isolates: 1000, most: 100 },
])(
  "gives the control object at most $most calls a second from $isolates isolates, and each request overrides of the last 15 seconds",
  async ({ isolates, most }) => {
    const scenario = { isolates, startWithinMs: 5000, meanLifeMs: Number.POSITIVE_INFINITY };
    const result = await simulateFanIn(scenario);
    expect(result.calls).toBeLessThanOrEqual(most);
    expect(result.oldestOverridesMs).toBeLessThan(15_000);
    expect(result.counted).toBe(result.requests);
    // The object takes about 1,000 calls a second.
    expect(result.startCalls).toBeLessThan(500);
  },
);

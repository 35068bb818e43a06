import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { quotaAfterMs } from "../../../../src/engine/fixed-window.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Answer, Store } from "../../../../src/stores/store.ts";
import { counter } from "../../../suite/counters.ts";
import { NOW } from "../../../suite/driver.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOW }));
afterEach(() => void vi.useRealTimers());

function at(seconds: number): void {
  vi.setSystemTime(NOW + seconds * 1000);
}

/** Five in any ten seconds. */
const FIVE = { ...counter({ limit: 5, subWindows: 10, windowMs: 1000 }) };

/** Creates two isolates over one store. */
function isolates() {
  const memory = createMemoryStore();
  const inner: Store = {
    ...memory,
    // A store behind a network answers after a turn, and not from memory.
    decide: (groups, now, unused) =>
      memory
        .decide(groups, now, unused)
        .map(async (each) => ({ ...(await each), fromMemory: false })),
  };
  const isolate = (): Decide => {
    const store = withDenialCache(inner);
    return async (...group: Demand[]) => {
      const answer = await (store.decide([group])[0] as Promise<Answer>);
      const waits = group.map((each, index) => {
        const tally = answer.tallies[index];
        return tally ? quotaAfterMs(each, tally, each.ceiling, answer.now) / 1000 : undefined;
      });
      return { admitted: answer.admitted, fromMemory: answer.fromMemory === true, waits };
    };
  };
  return [isolate(), isolate()] as const;
}

type Decide = (...group: Demand[]) => Promise<{
  readonly admitted: boolean;
  readonly fromMemory: boolean;
  readonly waits: readonly (number | undefined)[];
}>;

describe("a remembered denial under a sliding window", () => {
  it("says when there is quota for the same cost, until the first sub-window frees some", async () => {
    const [decide] = isolates();
    for (let request = 0; request < 5; request++) await decide(FIVE);
    at(3.5);
    expect(await decide(FIVE)).toEqual({ admitted: false, fromMemory: false, waits: [7.5] });
    at(4);
    expect(await decide(FIVE)).toEqual({ admitted: false, fromMemory: true, waits: [7] });
    at(11);
    expect(await decide(FIVE)).toMatchObject({ admitted: true, fromMemory: false });
  });

  it("is never too early, although another isolate has used the quota that was left", async () => {
    const [one, other] = isolates();
    const costing = (cost: number) => ({ ...FIVE, cost });
    await one(FIVE);
    at(2);
    await one(costing(2));
    at(3);
    expect(await one(costing(3))).toEqual({ admitted: false, fromMemory: false, waits: [8] });
    at(4);
    expect(await other(costing(2))).toMatchObject({ admitted: true });
    at(5);
    const { admitted, fromMemory, waits } = await one(costing(3));
    expect({ admitted, fromMemory }).toEqual({ admitted: false, fromMemory: true });
    at(5 + (waits[0] ?? 0));
    expect(await one(costing(3))).toMatchObject({ admitted: true });
  });

  it("knows the sub-windows of a limit beside the one that has denied", async () => {
    const [decide] = isolates();
    const { identity } = FIVE;
    const fixed = counter({ identity, limit: 2, windowMs: 4000 });
    const both = [fixed, counter({ identity, limit: 3, subWindows: 10, windowMs: 1000 })];
    await decide(...both);
    at(1);
    await decide(...both);
    at(4);
    await decide(...both);
    expect(await decide(...both)).toMatchObject({ admitted: false, fromMemory: false });
    at(5.5);
    // The first sub-window with a count frees its quota after 11 s.
    expect((await decide(...both)).waits[1]).toBe(5.5);
  });
});

import { expect, it } from "vitest";
import { cpuTimeMs } from "../../../fuzz/property.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { counter } from "../../suite/counters.ts";
import { HOUR } from "../../suite/driver.ts";
import { verdictOf } from "../../suite/verdict.ts";

/** The shortest time of several rounds is compared, because other programs delay some rounds. */
const ROUNDS = 3;
const REPLACED = 2000;

/** @returns how long a full store takes to replace counters that expire, in milliseconds */
async function replacementMs(max: number): Promise<number> {
  const store = createMemoryStore(max);
  for (let client = 0; client < max; client++) {
    await verdictOf(store.decide([[counter({ offsetMs: client % 60_000, key: `${client}` })]], 0));
  }
  const startedAt = cpuTimeMs();
  // The store is full at first. Its counters expire while requests add new ones.
  for (let past = 1; past <= REPLACED; past++) {
    await verdictOf(store.decide([[counter({ windowMs: HOUR })]], 1000 + past * 60)).catch(
      () => {},
    );
  }
  return cpuTimeMs() - startedAt;
}

it("a memory store replaces a counter without a pass over all of up to 100,000 counters", async () => {
  let [few, many] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < ROUNDS; round++) {
    few = Math.min(few, await replacementMs(1000));
    many = Math.min(many, await replacementMs(100_000));
  }
  // A pass over 100 times as many counters would take 100 times as long.
  expect(many).toBeLessThan(20 * few);
});

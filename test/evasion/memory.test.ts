import { describe, expect, it } from "vitest";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { FrequencyMap } from "../../src/stores/isolate/frequency-map.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import { counter } from "../suite/counters.ts";
import { driverOf, NOW } from "../suite/driver.ts";
import { leasable } from "../suite/leasable.ts";

/** The size of the caches. It is small, so that a small number of keys is enough to flood them. */
const MAX_ENTRIES = 64;
const KEYS = 5000;
const STEP_MS = 5;

/** Creates the leases and the denial cache of an isolate, in front of a memory store. */
function createIsolate() {
  const caches = withDenialCache(createMemoryStore(), MAX_ENTRIES);
  const options = { timeoutMs: 1000, background: () => {}, maxLeases: MAX_ENTRIES };
  return driverOf(leasable(withLeases(caches, options)));
}

describe("a flood of random keys", () => {
  it("does not admit a client that has used up its limit", async () => {
    const { admitted } = createIsolate();
    const client = counter({ limit: 5 });
    expect(await admitted([client], 9)).toBe(5);
    for (let key = 0; key < KEYS; key++) await admitted([counter()], 1, NOW + key);
    expect(await admitted([client], 20, NOW + KEYS)).toBe(0);
  });

  it("does not raise the limit of a client that keeps sending", async () => {
    const { admitted } = createIsolate();
    const client = counter({ limit: 100 });
    let passed = 0;
    for (let time = 0; time < 500; time++) {
      passed += await admitted([client], 1, NOW + time * STEP_MS);
      for (let key = 0; key < 10; key++)
        await admitted([counter({ limit: 0 })], 1, NOW + time * STEP_MS);
    }
    expect(passed).toBe(100);
  });

  it("neither grows a map nor evicts an entry in use", () => {
    const map = new FrequencyMap<{ recentUses: number; lastUsedAt: number }>(MAX_ENTRIES);
    map.add("client", { recentUses: 1, lastUsedAt: NOW });
    for (let key = 0; key < KEYS; key++) {
      const now = NOW + key * STEP_MS;
      if (key % 10 === 0) map.use("client", now);
      map.add(`random ${key}`, { recentUses: 1, lastUsedAt: now });
    }
    expect(map.size).toBe(MAX_ENTRIES);
    expect(map.peek("client")).toBeDefined();
  });
});

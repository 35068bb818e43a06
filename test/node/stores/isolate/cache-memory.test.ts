import { randomBytes } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { verdictOf } from "../../../suite/verdict.ts";

const NOW = Date.now();
const FLOOD = 200_000;
/**
 * The number of groups in one call during the flood, because a call for each group would take too
 * long.
 */
const AT_ONCE = 50;
/** The number of last keys, for which the flood sends separate calls. */
const LAST = 20_000;
const MAX_BYTES = 5_000_000;
/** Generous, because a busy machine is many times slower. */
const TIMEOUT_MS = 300_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapUsed(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** A store without state, so that only the caches use memory. */
function stub(admitted: boolean): Store {
  return {
    decide: (groups) =>
      groups.map(async (group) => ({
        now: Date.now(),
        admitted,
        tallies: group.map(({ cost, block }) => ({
          count: 100,
          resetMs: 60_000,
          banMs: 0,
          ...(block !== undefined && { charged: admitted ? Math.max(cost, block) : 0 }),
        })),
      })),
    adjust: async () => [],
    reset: async () => {},
  };
}

const digits = randomBytes(1 << 16).toString("base64url");
const prefix = "weir";
const rule = { name: "search", window: "1m" };

/** Creates the counter of a new client, with an identity of 22 characters and a complete key. */
function stranger(number: number): Demand {
  const at = (number * 7919) % (digits.length - 17);
  const text = `${digits.slice(at, at + 17)}${number.toString(36).padStart(5, "0")}`;
  const identity = Buffer.from(text).toString("latin1");
  return {
    key: `${prefix}:${rule.name}:${rule.window}:${identity}`,
    identity,
    limit: 100,
    windowMs: 60_000,
    offsetMs: 0,
    cost: 1,
    ceiling: 100,
    leasable: true,
  };
}

/** All measured stores. They are never freed, because the engine might free them during the next measurement. */
const measured: Store[] = [];

/**
 * Measures by how much the heap in use grows while both caches fill.
 */
async function heapOfFullCaches(
  admitted: boolean,
  keys: number,
  requestsPerKey: number,
): Promise<number> {
  const before = heapUsed();
  const options = { timeoutMs: 1000, background: () => {} };
  const store = withLeases(withDenialCache(stub(admitted)), options);
  measured.push(store);
  for (let key = 0; key < keys; ) {
    const count = key < keys - LAST ? AT_ONCE : 1;
    const groups = Array.from({ length: count }, () => [stranger(key++)]);
    for (let sent = 0; sent < requestsPerKey; sent++) await verdictOf(store.decide(groups));
  }
  const bytes = heapUsed() - before;
  return bytes;
}

it.each([
  { outcome: "admitted", admitted: true, keys: FLOOD, requestsPerKey: 1 },
  { outcome: "admitted", admitted: true, keys: 50_000, requestsPerKey: 3 },
  { outcome: "denied", admitted: false, keys: FLOOD, requestsPerKey: 1 },
  { outcome: "denied", admitted: false, keys: 50_000, requestsPerKey: 3 },
])(
  "both caches take less than 5 MB after $keys clients with $requestsPerKey $outcome requests each",
  async ({ admitted, keys, requestsPerKey }) => {
    // Compiled code is on the heap too. A smaller flood compiles it before the measurement.
    await heapOfFullCaches(admitted, 2 * LAST, requestsPerKey);
    const bytes = await heapOfFullCaches(admitted, keys, requestsPerKey);
    expect(bytes).toBeGreaterThan(500_000);
    expect(bytes).toBeLessThan(MAX_BYTES);
  },
  TIMEOUT_MS,
);

it(
  "100,000 counters of the memory store take about 30 MB",
  async () => {
    const counters = 100_000;
    const before = heapUsed();
    const store = createMemoryStore();
    for (let key = 0; key < counters; key++) await verdictOf(store.decide([[stranger(key)]], NOW));
    const held = heapUsed() - before;
    await expect(verdictOf(store.decide([[stranger(counters)]], NOW))).rejects.toThrow(
      `${counters}`,
    );
    expect(held).toBeGreaterThan(20_000_000);
    expect(held).toBeLessThan(40_000_000);
  },
  TIMEOUT_MS,
);

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { randomFor, shardOutlookOf } from "../../../src/explain/imagined-decision.ts";
import type { ClientState } from "../../../src/limiter/clients.ts";
import { allCountersOf, pickShards } from "../../../src/limiter/counters.ts";

// The first pair is drawn.
beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0));
afterEach(() => void vi.restoreAllMocks());

/** Returns the outlook if the shards have these counts of two each. */
function outlookOf(counts: readonly number[], cost = 1) {
  const shards = counts.length;
  const rule = { name: "api", limit: 2 * shards, window: "1m", shards } as const;
  const { rules } = defineConfig({ rules: [rule] });
  if (!rules[0]) throw new Error("The configuration has no rule.");
  const applied = { rule: rules[0], windows: rules[0].windows, identity: "a", cost };
  const counters = allCountersOf(applied as never, "p").map((each, index) => {
    return { ...each, tally: { count: counts[index] ?? 0, resetMs: 1000, banMs: 0 } };
  });
  return shardOutlookOf(applied as never, { counters } as unknown as ClientState);
}

it.each([
  ["no count", [0, 0, 0], 1, [0, 1], false],
  ["one full shard", [2, 1, 1], 1, [0, 1], false],
  ["two full shards of three", [2, 1, 2], 1, [0, 1], true],
  ["three full shards of four", [2, 2, 2, 0], 1, [0, 3], true],
  ["four full shards of five", [2, 2, 2, 2, 0], 1, [0, 1], true],
  ["only full shards", [2, 2, 2], 1, [0, 1], false],
  ["a cost above what is left", [1, 1], 2, [0, 1], false],
])("compares all pairs with %s", (_, counts, cost, pair, mayDiffer) => {
  expect(outlookOf(counts, cost)).toEqual({ pair, mayDiffer, shards: counts.length });
});

it("lets pickShards pick each pair, rule by rule", () => {
  const pairs = [2, 3, 7, 64].flatMap((shards) =>
    [
      [0, 1],
      [0, shards - 1],
      [shards - 2, shards - 1],
    ].map(([one = 0, other = 0]) => {
      return { pair: [one, other] as const, mayDiffer: false, shards };
    }),
  );
  const random = randomFor(pairs);
  for (const { pair, shards } of pairs) expect(pickShards(shards, random)).toEqual(pair);
});

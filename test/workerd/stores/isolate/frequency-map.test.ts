import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  DECAY_MS,
  type Frequency,
  FrequencyMap,
  recentUsesAt,
} from "../../../../src/stores/isolate/frequency-map.ts";
import { propertyRuns } from "../../../suite/runs.ts";

const NOW = 1_700_000_100_000;
/** The number of entries that an eviction examines. */
const EVICTION_SCAN = 8;

interface Entry extends Frequency {
  readonly name: string;
}

function mapOf(max: number) {
  const evicted = vi.fn<(entry: Entry, now: number) => void>();
  const map = new FrequencyMap<Entry>(max, evicted);
  /** Uses or adds an entry. @returns whether it is in the map */
  const use = (name: string, now = NOW) =>
    map.use(name, now) !== undefined || map.add(name, { name, recentUses: 1, lastUsedAt: now });
  const useTimes = (name: string, requests: number, now = NOW) => {
    for (let request = 0; request < requests; request++) use(name, now);
  };
  const has = (name: string) => map.peek(name) !== undefined;
  return { map, evicted, use, useTimes, has };
}

describe("the recent uses of an entry", () => {
  it("are the number of requests if no time has passed", () => {
    const { map, useTimes } = mapOf(2);
    useTimes("a", 5);
    expect(map.peek("a")).toMatchObject({ recentUses: 5, lastUsedAt: NOW });
  });

  it("fall to 1/e in ten seconds, and rise by one with each request", () => {
    const { map, useTimes } = mapOf(2);
    useTimes("a", 10);
    const entry = map.peek("a") as Entry;
    expect(recentUsesAt(entry, NOW + DECAY_MS)).toBeCloseTo(10 / Math.E, 10);
    expect(map.use("a", NOW + DECAY_MS)?.recentUses).toBeCloseTo(10 / Math.E + 1, 10);
  });

  it("are not changed by peek", () => {
    const { map, useTimes } = mapOf(2);
    useTimes("a", 2);
    map.peek("a");
    expect(map.peek("a")).toMatchObject({ recentUses: 2 });
  });

  it("do not decay or grow when the clock goes back", () => {
    const { map, useTimes } = mapOf(2);
    useTimes("a", 3);
    expect(recentUsesAt(map.peek("a") as Entry, NOW - DECAY_MS)).toBe(3);
    expect(map.use("a", NOW - DECAY_MS)).toMatchObject({
      recentUses: 4,
      lastUsedAt: NOW - DECAY_MS,
    });
  });

  it("are about ten for a client with one request a second", () => {
    const { map, use } = mapOf(2);
    for (let second = 0; second < 100; second++) use("a", NOW + second * 1000);
    expect(map.peek("a")?.recentUses).toBeCloseTo(1 / (1 - Math.exp(-0.1)), 1);
  });
});

describe("a frequency map", () => {
  it("has at most `max` entries", () => {
    const { map, evicted, use } = mapOf(3);
    for (const name of ["a", "b", "c"]) expect(use(name)).toBe(true);
    expect([map.size, evicted.mock.calls.length]).toEqual([3, 0]);
    use("d", NOW + 1);
    expect([map.size, evicted.mock.calls.length]).toEqual([3, 1]);
  });

  it("returns the least recently used entry", () => {
    const { map, use } = mapOf(3);
    expect(map.oldest()).toBeUndefined();
    for (const name of ["a", "b", "c"]) use(name);
    expect(map.oldest()?.[0]).toBe("a");
    use("a");
    expect(map.oldest()?.[0]).toBe("b");
    map.peek("b");
    expect(map.oldest()?.[0]).toBe("b");
    map.delete("b");
    expect(map.oldest()?.[0]).toBe("c");
  });

  it("evicts the least recently used entry with less than one recent use", () => {
    const { evicted, use, has } = mapOf(2);
    use("a");
    use("b");
    expect(use("c", NOW + 1)).toBe(true);
    expect([has("a"), has("b"), has("c")]).toEqual([false, true, true]);
    expect(evicted.mock.calls).toEqual([[expect.objectContaining({ name: "a" }), NOW + 1]]);
  });

  it("keeps an entry that is as busy as the new entry, until its uses have decayed", () => {
    const { useTimes, use, has } = mapOf(1);
    useTimes("a", 2);
    const coolsAt = NOW + Math.ceil(DECAY_MS * Math.log(2));
    expect(use("b", coolsAt - 1)).toBe(false);
    expect(has("a")).toBe(true);
    expect(use("c", coolsAt)).toBe(true);
    expect(has("a")).toBe(false);
  });

  it(`examines ${EVICTION_SCAN} entries in an eviction, and others in the next one`, () => {
    const { map, useTimes, use, has } = mapOf(EVICTION_SCAN + 1);
    for (let busy = 0; busy < EVICTION_SCAN; busy++) useTimes(`busy ${busy}`, 9);
    use("rare");
    map.use("busy 0", NOW);
    for (let busy = 1; busy < EVICTION_SCAN; busy++) map.use(`busy ${busy}`, NOW);
    // The rare entry is now the first one, so the eviction finds it at once.
    expect(map.oldest()?.[0]).toBe("rare");
    expect(use("x", NOW + 1)).toBe(true);
    expect(has("rare")).toBe(false);

    // Entry x comes after eight busy entries, so an eviction does not find it. The eviction moves
    // the busy entries to the end, and the next eviction finds x.
    expect(map.oldest()?.[0]).toBe("busy 0");
    expect(use("y", NOW + 2)).toBe(false);
    expect(map.oldest()?.[0]).toBe("x");
    expect(use("y", NOW + 3)).toBe(true);
    expect(has("x")).toBe(false);
  });

  it("adds one of eight new entries, in place of the least used entry, if all entries are busier", () => {
    const { map, evicted, useTimes, use, has } = mapOf(3);
    useTimes("a", 9);
    useTimes("b", 5);
    useTimes("c", 7);
    for (let newcomer = 1; newcomer < 8; newcomer++) expect(use(`${newcomer}`)).toBe(false);
    expect(evicted).not.toHaveBeenCalled();
    expect(use("8")).toBe(true);
    expect([map.size, has("a"), has("b"), has("c")]).toEqual([3, true, false, true]);
    expect(evicted).toHaveBeenCalledTimes(1);
    // Uses of the new entry are counted, as for every entry.
    expect(use("8")).toBe(true);
    expect(map.peek("8")).toMatchObject({ recentUses: 2 });
  });

  it("does not call onEvict for a deleted or a rejected entry", () => {
    const { map, evicted, useTimes, use } = mapOf(1);
    useTimes("a", 5);
    expect(use("b")).toBe(false);
    map.delete("a");
    map.delete("a");
    map.delete("nobody");
    expect(use("b")).toBe(true);
    expect(evicted).not.toHaveBeenCalled();
  });

  it("distinguishes keys with a common prefix and keys that JavaScript objects inherit", () => {
    const { map, use, has } = mapOf(9);
    const names = ["__proto__", "constructor", "toString", "a", "a:", "a:1", ""];
    for (const name of names) expect(has(name), name).toBe(false);
    for (const name of names) use(name);
    expect(names.map((name) => map.peek(name)?.name)).toEqual(names);
    map.delete("a:");
    expect([has("a"), has("a:"), has("a:1")]).toEqual([true, false, true]);
  });

  it("never has more than `max` entries and never loses an entry, for random operations", () => {
    const step = fc.record({
      key: fc.nat({ max: 30 }),
      passMs: fc.constantFrom(0, 0, 1, 1000, DECAY_MS, -500),
      remove: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 100 }), run),
      propertyRuns(500),
    );
    function run(max: number, steps: { key: number; passMs: number; remove: boolean }[]) {
      const { map, evicted, use } = mapOf(max);
      const held = new Set<string>();
      evicted.mockImplementation(({ name }) => expect(held.delete(name)).toBe(true));
      let now = NOW;
      for (const { key, passMs, remove } of steps) {
        now += passMs;
        const name = `${key}`;
        if (remove && key % 5 === 0) {
          map.delete(name);
          held.delete(name);
        } else if (use(name, now)) held.add(name);
        expect(map.size).toBeLessThanOrEqual(max);
        expect(map.size).toBe(held.size);
      }
      for (const name of held) expect(map.peek(name)?.name).toBe(name);
    }
  });
});

describe("a client with one request a second", () => {
  const MAX = 64;

  /**
   * Returns whether the client stays in the map during a flood of one minute. The flood sends
   * `perSecond` requests a second, and `requestsPerKey` requests with each key.
   */
  function staysThrough(perSecond: number, requestsPerKey: number): boolean {
    const { use, has } = mapOf(MAX);
    for (let second = 0; second < 20; second++) use("victim", NOW + second * 1000);
    let [key, stays] = [0, true];
    for (let second = 20; second < 80; second++) {
      use("victim", NOW + second * 1000);
      for (let sent = 0; sent < perSecond; sent++) {
        const now = NOW + second * 1000 + Math.floor((sent / perSecond) * 1000);
        use(`flood ${Math.floor(key++ / requestsPerKey)}`, now);
        stays &&= has("victim");
      }
    }
    return stays;
  }

  it.each([100, 1000, 10_000])("stays in the map in a flood of %i random keys a second", (rate) => {
    expect(staysThrough(rate, 1)).toBe(true);
  });

  it.each([2, 5])("stays in the map when the flood uses each key %i times", (requests) => {
    expect(staysThrough(5000, requests)).toBe(true);
  });

  it("is evicted if a flood sends more requests than the client for each entry of the map", () => {
    expect(staysThrough(20_000, 40)).toBe(false);
  });
});

describe("the order of entries", () => {
  const operation = fc.record({
    kind: fc.constantFrom("use", "use", "use", "delete", "clear"),
    name: fc.constantFrom("a", "b", "c", "d"),
  });

  it("is the order of a list in which each use moves a key to the end", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
        const { map, use } = mapOf(10);
        let order: string[] = [];
        for (const { kind, name } of operations) {
          if (kind === "clear") {
            map.clear();
            order = [];
          } else {
            if (kind === "use") use(name);
            else map.delete(name);
            order = [...order.filter((each) => each !== name), ...(kind === "use" ? [name] : [])];
          }
          expect(map.oldest()?.[0]).toBe(order[0]);
        }
        // The test deletes the first entry again and again, so it sees the whole order.
        for (const name of order) {
          expect(map.oldest()?.[0]).toBe(name);
          map.delete(name);
        }
      }),
    );
  });
});

import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  DECAY_MS,
  type Frequency,
  FrequencyMap,
  recentUsesAt,
} from "../../../../src/stores/isolate/frequency-map.ts";

const NOW = 1_700_000_100_000;
/** Entries that an eviction looks at. */
const EXAMINED = 8;

interface Entry extends Frequency {
  readonly name: string;
}

function mapOf(max: number) {
  const evicted = vi.fn<(entry: Entry, now: number) => void>();
  const map = new FrequencyMap<Entry>(max, evicted);
  /** What a request for a key comes to. */
  const use = (name: string, now = NOW) =>
    map.use(name, now) !== undefined || map.add(name, { name, recentUses: 1, lastUsedAt: now });
  /** Asks for a key until it is as hot as that. */
  const recentUses = (name: string, requests: number, now = NOW) => {
    for (let request = 0; request < requests; request++) use(name, now);
  };
  const has = (name: string) => map.peek(name) !== undefined;
  return { map, evicted, use, recentUses, has };
}

describe("recentUses", () => {
  it("is the number of requests, where no time has passed", () => {
    const { map, recentUses } = mapOf(2);
    recentUses("a", 5);
    expect(map.peek("a")).toMatchObject({ recentUses: 5, lastUsedAt: NOW });
  });

  it("falls to 1/e in ten seconds, and a request adds one", () => {
    const { map, recentUses } = mapOf(2);
    recentUses("a", 10);
    const entry = map.peek("a") as Entry;
    expect(recentUsesAt(entry, NOW + DECAY_MS)).toBeCloseTo(10 / Math.E, 10);
    expect(map.use("a", NOW + DECAY_MS)?.recentUses).toBeCloseTo(10 / Math.E + 1, 10);
  });

  it("is not changed by looking", () => {
    const { map, recentUses } = mapOf(2);
    recentUses("a", 2);
    map.peek("a");
    expect(map.peek("a")).toMatchObject({ recentUses: 2 });
  });

  it("neither rises nor falls by a clock that goes back", () => {
    const { map, recentUses } = mapOf(2);
    recentUses("a", 3);
    expect(recentUsesAt(map.peek("a") as Entry, NOW - DECAY_MS)).toBe(3);
    expect(map.use("a", NOW - DECAY_MS)).toMatchObject({
      recentUses: 4,
      lastUsedAt: NOW - DECAY_MS,
    });
  });

  it("comes to about ten for a client that asks once a second", () => {
    const { map, use } = mapOf(2);
    for (let second = 0; second < 100; second++) use("a", NOW + second * 1000);
    expect(map.peek("a")?.recentUses).toBeCloseTo(1 / (1 - Math.exp(-0.1)), 1);
  });
});

describe("a hot map", () => {
  it("holds as many as it may, and not one more", () => {
    const { map, evicted, use } = mapOf(3);
    for (const name of ["a", "b", "c"]) expect(use(name)).toBe(true);
    expect([map.size, evicted.mock.calls.length]).toEqual([3, 0]);
    use("d", NOW + 1);
    expect([map.size, evicted.mock.calls.length]).toEqual([3, 1]);
  });

  it("tells what was used least recently", () => {
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

  it("evicts the least recent of those that have cooled below a single request", () => {
    const { evicted, use, has } = mapOf(2);
    use("a");
    use("b");
    expect(use("c", NOW + 1)).toBe(true);
    expect([has("a"), has("b"), has("c")]).toEqual([false, true, true]);
    expect(evicted.mock.calls).toEqual([[expect.objectContaining({ name: "a" }), NOW + 1]]);
  });

  it("passes over what is as hot as the newcomer, up to when it has cooled", () => {
    const { recentUses, use, has } = mapOf(1);
    recentUses("a", 2);
    const coolsAt = NOW + Math.ceil(DECAY_MS * Math.log(2));
    expect(use("b", coolsAt - 1)).toBe(false);
    expect(has("a")).toBe(true);
    expect(use("c", coolsAt)).toBe(true);
    expect(has("a")).toBe(false);
  });

  it(`looks at ${EXAMINED} for one that it may evict, and then at the next`, () => {
    const { map, recentUses, use, has } = mapOf(EXAMINED + 1);
    for (let hot = 0; hot < EXAMINED; hot++) recentUses(`hot ${hot}`, 9);
    use("cold");
    map.use("hot 0", NOW);
    for (let hot = 1; hot < EXAMINED; hot++) map.use(`hot ${hot}`, NOW);
    // The cold one comes first now: it is found at once.
    expect(map.oldest()?.[0]).toBe("cold");
    expect(use("x", NOW + 1)).toBe(true);
    expect(has("cold")).toBe(false);

    // Behind eight hot ones it is not found; they are passed over, and then it is.
    expect(map.oldest()?.[0]).toBe("hot 0");
    expect(use("y", NOW + 2)).toBe(false);
    expect(map.oldest()?.[0]).toBe("x");
    expect(use("y", NOW + 3)).toBe(true);
    expect(has("x")).toBe(false);
  });

  it("lets in one of eight newcomers that find only hotter ones, for the coldest", () => {
    const { map, evicted, recentUses, use, has } = mapOf(3);
    recentUses("a", 9);
    recentUses("b", 5);
    recentUses("c", 7);
    for (let newcomer = 1; newcomer < 8; newcomer++) expect(use(`${newcomer}`)).toBe(false);
    expect(evicted).not.toHaveBeenCalled();
    expect(use("8")).toBe(true);
    expect([map.size, has("a"), has("b"), has("c")]).toEqual([3, true, false, true]);
    expect(evicted).toHaveBeenCalledTimes(1);
    // From then on it is in, and heats up like any other.
    expect(use("8")).toBe(true);
    expect(map.peek("8")).toMatchObject({ recentUses: 2 });
  });

  it("calls nobody for what is deleted, or turned away", () => {
    const { map, evicted, recentUses, use } = mapOf(1);
    recentUses("a", 5);
    expect(use("b")).toBe(false);
    map.delete("a");
    map.delete("a");
    map.delete("nobody");
    expect(use("b")).toBe(true);
    expect(evicted).not.toHaveBeenCalled();
  });

  it("tells apart keys that objects have already, or that begin alike", () => {
    const { map, use, has } = mapOf(9);
    const names = ["__proto__", "constructor", "toString", "a", "a:", "a:1", ""];
    for (const name of names) expect(has(name), name).toBe(false);
    for (const name of names) use(name);
    expect(names.map((name) => map.peek(name)?.name)).toEqual(names);
    map.delete("a:");
    expect([has("a"), has("a:"), has("a:1")]).toEqual([true, false, true]);
  });

  it("never holds more than it may, nor loses count, whatever is asked", () => {
    const step = fc.record({
      key: fc.nat({ max: 30 }),
      passMs: fc.constantFrom(0, 0, 1, 1000, DECAY_MS, -500),
      remove: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 100 }), run),
      { seed: 20_260_102, numRuns: 500 },
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

describe("a client that asks once a second", () => {
  const MAX = 64;

  /** Whether it keeps its place for a minute, of a flood in which each key is asked for so often. */
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

  it.each([100, 1000, 10_000])("keeps its place in a flood of %i random keys a second", (rate) => {
    expect(staysThrough(rate, 1)).toBe(true);
  });

  it.each([2, 5])("keeps its place when each key of the flood is sent %i times", (requests) => {
    expect(staysThrough(5000, requests)).toBe(true);
  });

  it("gives way only to who sends more for each of the places than it does", () => {
    expect(staysThrough(20_000, 40)).toBe(false);
  });
});

describe("the order of use", () => {
  const operation = fc.record({
    kind: fc.constantFrom("ask", "ask", "ask", "delete", "clear"),
    name: fc.constantFrom("a", "b", "c", "d"),
  });

  it("is that of a list in which each use moves a key to the end", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
        const { map, use } = mapOf(10);
        let order: string[] = [];
        for (const { kind, name } of operations) {
          if (kind === "clear") {
            map.clear();
            order = [];
          } else {
            if (kind === "ask") use(name);
            else map.delete(name);
            order = [...order.filter((each) => each !== name), ...(kind === "ask" ? [name] : [])];
          }
          expect(map.oldest()?.[0]).toBe(order[0]);
        }
        // Emptied from the front, the map shows all of its order.
        for (const name of order) {
          expect(map.oldest()?.[0]).toBe(name);
          map.delete(name);
        }
      }),
    );
  });
});

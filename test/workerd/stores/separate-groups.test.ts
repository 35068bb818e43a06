import { describe, expect, it } from "vitest";
import type { Counter } from "../../../src/engine/counter.ts";
import { withDeadline } from "../../../src/stores/deadline.ts";
import { withDenialCache } from "../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { withSeparateGroups } from "../../../src/stores/separate-groups.ts";
import type { Store } from "../../../src/stores/store.ts";
import { StoreError } from "../../../src/stores/store-error.ts";
import { counter } from "../../suite/counters.ts";
import { NOW } from "../../suite/driver.ts";

const TIMEOUT_MS = 50;

/** Creates a store with an object for each client. Calls to the object `broken` run `fail`. */
function storeThat(fail: () => Promise<never>) {
  const memory = createMemoryStore();
  const calls: string[][] = [];
  const tasks: Promise<unknown>[] = [];
  const background = (task: Promise<unknown>) => void tasks.push(task);
  const objects: Store = {
    ...memory,
    async decide(groups, now = NOW, unused) {
      calls.push(groups.map(([first]) => first?.identity ?? ""));
      if (groups.flat().some(({ identity }) => identity === "broken")) await fail();
      return memory.decide(groups, now, unused);
    },
  };
  const separate = withSeparateGroups(objects, { timeoutMs: TIMEOUT_MS, background });
  const store = withLeases(withDenialCache(withDeadline(separate, TIMEOUT_MS)), {
    timeoutMs: TIMEOUT_MS,
    background,
  });
  return { store, memory, calls, tasks };
}

const away = () => Promise.reject(new StoreError("unreachable", "away"));
const never = () => new Promise<never>(() => {});
const shadowOf = (fields: Partial<Counter> = {}) =>
  counter({ identity: "other", shadow: true, ...fields });

describe.each([
  ["fails", away, "unreachable"],
  ["never answers", never, "timeout"],
])("a shadow group whose object %s", (_, fail, failure) => {
  it.each([true, false])(
    "does not change the verdict on an enforced group, leasable: %s",
    async (leasable) => {
      const { store } = storeThat(fail);
      const enforced = counter({ limit: 3, leasable });
      const verdicts = [];
      for (let request = 0; request < 5; request++) {
        const { groups } = await store.decide(
          [[enforced], [shadowOf({ identity: "broken" })]],
          NOW,
        );
        await expect(groups[1]?.later).rejects.toMatchObject({ failure });
        verdicts.push(groups[0]?.admitted);
      }
      expect(verdicts).toEqual([true, true, true, false, false]);
    },
  );

  it("puts the quota back that was taken from its lease", async () => {
    const { store } = storeThat(fail);
    const enforced = counter();
    const [leased, broken] = [
      shadowOf({ limit: 1000, leasable: true }),
      shadowOf({ identity: "broken" }),
    ];
    for (let request = 0; request < 20; request++) {
      await (await store.decide([[enforced], [leased]], NOW)).groups[1]?.later;
    }
    const { groups } = await store.decide([[enforced], [leased, broken]], NOW);
    await expect(groups[1]?.later).rejects.toBeDefined();
    const read = await store.decide([[{ ...leased, cost: 0 }]], NOW);
    expect(read.groups[0]?.tallies[0]?.count).toBe(20);
  });
});

describe("a shadow group", () => {
  it("is decided separately, with its lease and the denial cache", async () => {
    const { store, calls } = storeThat(away);
    const admitted = async (shadow: Counter) => {
      const { groups } = await store.decide([[counter({ limit: 0 })], [shadow]], NOW);
      const [, answer] = groups;
      return (await answer?.later)?.groups[0]?.admitted ?? answer?.admitted;
    };
    const shadow = shadowOf({ limit: 30, leasable: true });
    let count = 0;
    for (let request = 0; request < 40; request++) if (await admitted(shadow)) count++;
    expect(count).toBe(30);
    calls.length = 0;
    await admitted(shadow);
    expect(calls.flat()).not.toContain("other");
  });

  it("is decided in the same call if all of its counters and all enforced counters are in one object", async () => {
    const { store, calls } = storeThat(away);
    const enforced = counter();
    const { groups } = await store.decide([
      [enforced],
      [shadowOf({ identity: enforced.identity })],
    ]);
    expect(calls).toEqual([[enforced.identity, enforced.identity]]);
    expect(groups.map(({ admitted, later }) => [admitted, later])).toEqual([
      [true, undefined],
      [true, undefined],
    ]);
  });

  it("makes the caller wait if no rule is enforced", async () => {
    const { store } = storeThat(away);
    const { groups } = await store.decide([[shadowOf()], [shadowOf({ identity: "third" })]], NOW);
    expect(groups.map(({ admitted, later }) => [admitted, later])).toEqual([
      [true, undefined],
      [true, undefined],
    ]);
    await expect(store.decide([[shadowOf({ identity: "broken" })]], NOW)).rejects.toMatchObject({
      failure: "unreachable",
    });
  });

  it("is counted although the enforced groups cannot be decided", async () => {
    const { store, memory, tasks } = storeThat(away);
    const shadow = shadowOf();
    await expect(
      store.decide([[counter({ identity: "broken" })], [shadow]], NOW),
    ).rejects.toMatchObject({ failure: "unreachable" });
    await Promise.all(tasks);
    const { groups } = await memory.decide([[{ ...shadow, cost: 0 }]], NOW);
    expect(groups[0]?.tallies[0]?.count).toBe(1);
  });
});

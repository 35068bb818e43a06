import { describe, expect, it } from "vitest";
import type { Demand } from "../../../src/engine/counter.ts";
import { StoreError } from "../../../src/stores/store.ts";
import { counter } from "../../suite/counters.ts";
import { NOW } from "../../suite/driver.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { storeThat } from "./memory-objects.ts";

const away = () => Promise.reject(new StoreError("unreachable", "away"));
const never = () => new Promise<never>(() => {});
const shadowOf = (fields: Partial<Demand> = {}) =>
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
        const [first, second] = store.decide([[enforced], [shadowOf({ identity: "broken" })]], NOW);
        await expect(second).rejects.toMatchObject({ failure });
        verdicts.push((await first)?.admitted);
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
      await verdictOf(store.decide([[enforced], [leased]], NOW));
    }
    const [, second] = store.decide([[enforced], [leased, broken]], NOW);
    await expect(second).rejects.toBeDefined();
    const read = await verdictOf(store.decide([[{ ...leased, cost: 0 }]], NOW));
    expect(read.groups[0]?.tallies[0]?.count).toBe(20);
  });
});

describe("a shadow group", () => {
  it("is decided separately, with its lease and the denial cache", async () => {
    const { store, calls } = storeThat(away);
    const admitted = async (shadow: Demand) => {
      const { groups } = await verdictOf(store.decide([[counter({ limit: 0 })], [shadow]], NOW));
      return groups[1]?.admitted;
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
    const { groups } = await verdictOf(
      store.decide([[enforced], [shadowOf({ identity: enforced.identity })]]),
    );
    expect(calls).toEqual([[enforced.identity, enforced.identity]]);
    expect(groups.map(({ admitted }) => admitted)).toEqual([true, true]);
  });

  it("fails alone if no rule is enforced", async () => {
    const { store } = storeThat(away);
    const groups = [shadowOf(), shadowOf({ identity: "broken" })].map((each) => [each]);
    expect(await Promise.allSettled(store.decide(groups, NOW))).toMatchObject([
      { value: { admitted: true } },
      { reason: { failure: "unreachable" } },
    ]);
  });

  it("is counted although the enforced groups cannot be decided", async () => {
    const { store, memory, tasks } = storeThat(away);
    const shadow = shadowOf();
    const decided = store.decide([[counter({ identity: "broken" })], [shadow]], NOW);
    await expect(verdictOf(decided)).rejects.toMatchObject({ failure: "unreachable" });
    await Promise.all(tasks);
    const { groups } = await verdictOf(memory.decide([[{ ...shadow, cost: 0 }]], NOW));
    expect(groups[0]?.tallies[0]?.count).toBe(1);
  });
});

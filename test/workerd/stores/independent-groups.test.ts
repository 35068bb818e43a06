import { describe, expect, it } from "vitest";
import type { Demand } from "../../../src/engine/counter.ts";
import { StoreError } from "../../../src/stores/store.ts";
import { counter } from "../../suite/counters.ts";
import { NOW } from "../../suite/driver.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { storeThat as objectsThat } from "./memory-objects.ts";

function storeThat(fail: () => Promise<never>) {
  const { store, memory, calls, tasks } = objectsThat(fail);
  /** Sends a request to which both counters apply. */
  async function send(enforced: Demand, mark: Demand) {
    const { groups } = await verdictOf(store.decide([[enforced], [mark]], NOW));
    await Promise.all(tasks.splice(0));
    return groups.map(({ admitted }) => admitted);
  }
  const used = async (each: Demand) => {
    const { groups } = await verdictOf(memory.decide([[{ ...each, cost: 0 }]], NOW));
    return groups[0]?.tallies[0]?.count;
  };
  return { store, calls, send, used };
}

const away = () => Promise.reject(new StoreError("unreachable", "away"));
const never = () => new Promise<never>(() => {});
const markOf = (fields: Partial<Demand> = {}) =>
  counter({ identity: "other", marks: true, ...fields });

describe.each([
  ["fails", away, "unreachable"],
  ["never answers", never, "timeout"],
])("the group of a mark whose object %s", (_, fail, failure) => {
  it.each([true, false])(
    "does not change the verdict on an enforced group, leasable: %s",
    async (leasable) => {
      const { store } = storeThat(fail);
      const enforced = counter({ limit: 3, leasable });
      const broken = markOf({ identity: "broken" });
      const verdicts = [];
      for (let request = 0; request < 5; request++) {
        const [first, second] = await Promise.allSettled(store.decide([[enforced], [broken]], NOW));
        const isAdmitted = first?.status === "fulfilled" && first.value.admitted;
        verdicts.push(isAdmitted);
        expect(second).toMatchObject({ reason: { failure } });
      }
      expect(verdicts).toEqual([true, true, true, false, false]);
    },
  );

  it("does not change the verdict on a group that leases admit", async () => {
    const { store, calls, send } = storeThat(fail);
    const enforced = counter({ limit: 10_000, leasable: true });
    for (let request = 0; request < 50; request++) await send(enforced, markOf({ limit: 0 }));
    calls.length = 0;
    const [first, second] = store.decide([[enforced], [markOf({ identity: "broken" })]], NOW);
    await expect(second).rejects.toMatchObject({ failure });
    expect((await first)?.admitted).toBe(true);
    expect(calls.flat()).not.toContain(enforced.identity);
  });

  it("leaves the call undecided if no group is enforced", async () => {
    const { store } = storeThat(fail);
    const call = verdictOf(store.decide([[markOf({ identity: "broken" })]], NOW));
    await expect(call).rejects.toMatchObject({ failure });
  });
});

describe("the group of a mark", () => {
  it("is decided in the call of the enforced group if both are in one object", async () => {
    const { calls, send } = storeThat(away);
    const enforced = counter();
    expect(await send(enforced, markOf({ identity: enforced.identity }))).toEqual([true, true]);
    expect(calls).toEqual([[enforced.identity, enforced.identity]]);
  });

  it("is decided beside the enforced group if it is in another object", async () => {
    const { calls, send } = storeThat(away);
    const enforced = counter({ limit: 1 });
    expect(await send(enforced, markOf())).toEqual([true, true]);
    expect(await send(enforced, markOf())).toEqual([false, true]);
    expect(calls).toEqual([[enforced.identity], ["other"], [enforced.identity], ["other"]]);
  });

  it("takes no call when its quota is used up", async () => {
    const { calls, send } = storeThat(away);
    const [enforced, mark] = [counter({ limit: 1_000_000, leasable: true }), markOf({ limit: 2 })];
    for (let request = 0; request < 100; request++) await send(enforced, mark);
    calls.length = 0;
    for (let request = 0; request < 100; request++) {
      expect(await send(enforced, mark)).toEqual([true, false]);
    }
    expect(calls.flat()).not.toContain("other");
    expect(calls.length).toBeLessThan(10);
  });

  it("is admitted from a lease, together with the enforced group", async () => {
    const { calls, send, store } = storeThat(away);
    const enforced = counter({ limit: 100_000, leasable: true });
    const mark = markOf({ identity: enforced.identity, limit: 50_000, leasable: true });
    for (let request = 0; request < 100; request++) await send(enforced, mark);
    calls.length = 0;
    for (let request = 0; request < 100; request++) {
      expect(await send(enforced, mark)).toEqual([true, true]);
    }
    expect(calls.length).toBeLessThan(20);
    const counts = async (each: Demand) => verdictOf(store.decide([[{ ...each, cost: 0 }]], NOW));
    for (const each of [enforced, mark]) {
      expect((await counts(each)).groups[0]?.tallies[0]?.count).toBe(200);
    }
  });
});

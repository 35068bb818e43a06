import { describe, expect, it } from "vitest";
import type { Counter } from "../../../src/engine/counter.ts";
import { withDeadline } from "../../../src/stores/deadline.ts";
import { withDenialCache } from "../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { withSeparateGroups } from "../../../src/stores/separate-groups.ts";
import type { Store, Verdict } from "../../../src/stores/store.ts";
import { StoreError } from "../../../src/stores/store-error.ts";
import { counter } from "../../suite/counters.ts";
import { NOW } from "../../suite/driver.ts";

const TIMEOUT_MS = 50;

/**
 * Creates a store with an object for each client, and all wrappers. Calls to the object `broken`
 * run `fail`.
 */
function storeThat(fail: () => Promise<never>) {
  const memory = createMemoryStore();
  /** The identities in each call. */
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
  /** Sends a request to which both counters apply. */
  async function send(enforced: Counter, mark: Counter) {
    const { groups } = await store.decide([[enforced], [mark]], NOW);
    const own = groups[1]?.later ? (await groups[1].later).groups[0] : groups[1];
    await Promise.all(tasks.splice(0));
    return [groups[0]?.admitted, own?.admitted];
  }
  const used = async (each: Counter) => {
    const { groups } = await memory.decide([[{ ...each, cost: 0 }]], NOW);
    return groups[0]?.tallies[0]?.count;
  };
  return { store, calls, send, used };
}

const away = () => Promise.reject(new StoreError("unreachable", "away"));
const never = () => new Promise<never>(() => {});
const markOf = (fields: Partial<Counter> = {}) =>
  counter({ identity: "other", dependent: true, ...fields });

describe.each([
  ["fails", away, "unreachable"],
  ["never answers", never, "timeout"],
])("a dependent group whose object %s", (_, fail, failure) => {
  it.each([true, false])(
    "does not change the verdict on an enforced group, leasable: %s",
    async (leasable) => {
      const { store } = storeThat(fail);
      const enforced = counter({ limit: 3, leasable });
      const broken = markOf({ identity: "broken" });
      const verdicts = [];
      for (let request = 0; request < 5; request++) {
        const { groups } = await store.decide([[enforced], [broken]], NOW);
        verdicts.push(groups[0]?.admitted);
        if (groups[0]?.admitted) await expect(groups[1]?.later).rejects.toMatchObject({ failure });
        else expect(groups[1]).toMatchObject({ admitted: false, isSkipped: true });
      }
      expect(verdicts).toEqual([true, true, true, false, false]);
    },
  );

  it("does not change the verdict on a group that leases admit", async () => {
    const { store, calls, send } = storeThat(fail);
    const enforced = counter({ limit: 10_000, leasable: true });
    for (let request = 0; request < 50; request++) await send(enforced, markOf({ limit: 0 }));
    calls.length = 0;
    const { groups } = await store.decide([[enforced], [markOf({ identity: "broken" })]], NOW);
    expect(groups[0]?.admitted).toBe(true);
    await expect(groups[1]?.later).rejects.toMatchObject({ failure });
    expect(calls.flat()).not.toContain(enforced.identity);
  });

  it("leaves the call undecided if no group is enforced", async () => {
    const { store } = storeThat(fail);
    const call = store.decide([[markOf({ identity: "broken" })]], NOW);
    await expect(call).rejects.toMatchObject({ failure });
  });
});

describe("a dependent group", () => {
  it("is decided in the call of the enforced group if both are in one object", async () => {
    const { calls, send } = storeThat(away);
    const enforced = counter();
    expect(await send(enforced, markOf({ identity: enforced.identity }))).toEqual([true, true]);
    expect(calls).toEqual([[enforced.identity, enforced.identity]]);
  });

  it("is decided after the enforced group if it is in another object", async () => {
    const { calls, send } = storeThat(away);
    const enforced = counter({ limit: 1 });
    expect(await send(enforced, markOf())).toEqual([true, true]);
    expect(await send(enforced, markOf())).toEqual([false, false]);
    expect(calls).toEqual([[enforced.identity], ["other"], [enforced.identity]]);
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

  it("takes no call when the enforced group is denied from memory", async () => {
    const { calls, send, used } = storeThat(away);
    const [enforced, mark] = [counter({ limit: 1 }), markOf({ limit: 9, leasable: true })];
    for (let request = 0; request < 3; request++) await send(enforced, mark);
    calls.length = 0;
    for (let request = 0; request < 9; request++) {
      expect(await send(enforced, mark)).toEqual([false, false]);
    }
    expect(calls).toEqual([]);
    expect(await used(mark)).toBe(1);
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
    const counts = async (each: Counter): Promise<Verdict> =>
      store.decide([[{ ...each, cost: 0 }]], NOW);
    for (const each of [enforced, mark]) {
      expect((await counts(each)).groups[0]?.tallies[0]?.count).toBe(200);
    }
  });

  it("puts quota back into its lease when the enforced group is denied", async () => {
    const { send, store } = storeThat(away);
    const free = counter({ limit: 100_000, leasable: true });
    const mark = markOf({ identity: free.identity, limit: 50_000, leasable: true });
    for (let request = 0; request < 50; request++) await send(free, mark);
    for (let request = 0; request < 30; request++) {
      const strict = counter({ identity: free.identity, limit: 0 });
      expect(await send(strict, mark)).toEqual([false, false]);
    }
    const { groups } = await store.decide([[{ ...mark, cost: 0 }]], NOW);
    expect(groups[0]?.tallies[0]?.count).toBe(50);
  });
});

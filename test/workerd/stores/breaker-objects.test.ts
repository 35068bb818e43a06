import { describe, expect, it } from "vitest";
import type { Demand } from "../../../src/engine/counter.ts";
import { PAUSE_MS } from "../../../src/stores/breaker.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { counter } from "../../suite/counters.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { withBreaker } from "../../suite/wrappers.ts";

const NOW = 1_700_000_100_000;

/** Creates a breaker over objects. Every call to an object in `state.broken` fails. */
function overObjects() {
  const state = { now: NOW, calls: 0, broken: new Set<string>(), changes: [] as string[] };
  const memory = createMemoryStore();
  const inner: Store = {
    ...memory,
    decide(groups, ...rest) {
      state.calls += 1;
      if (groups.flat().some(({ identity }) => state.broken.has(identity))) {
        return [Promise.reject(new StoreError("unreachable", "a Durable Object did not answer"))];
      }
      return memory.decide(groups, ...rest);
    },
  };
  const store = withBreaker(inner, {
    timeoutMs: 300,
    clients: 3,
    onChange: (change, scope) => state.changes.push(`${scope} ${change}`),
    clock: () => state.now,
  });
  /**
   * Decides a group that has one counter in each of these objects. Returns "done" or the failure.
   */
  function decide(...objects: (string | Partial<Demand>)[]): Promise<string> {
    const group = objects.map((each) =>
      counter({ limit: 1e6, ...(typeof each === "string" ? { identity: each } : each) }),
    );
    return verdictOf(store.decide([group], NOW)).then(
      () => "done",
      (error: StoreError) => error.failure,
    );
  }
  return { state, store, decide };
}

describe("a breaker over objects", () => {
  it("opens for the whole store after five failures in a row for three clients", async () => {
    const { state, decide } = overObjects();
    state.broken = new Set(["a", "b", "c"]);
    for (const client of ["a", "a", "b", "b"]) expect(await decide(client)).toBe("unreachable");
    expect(state.changes).toEqual([]);
    expect(await decide("c")).toBe("unreachable");
    expect(state.changes).toEqual(["store open"]);
    expect(await decide("d")).toBe("circuit-open");
    state.now += PAUSE_MS;
    expect(await decide("d")).toBe("done");
    expect(state.changes).toEqual(["store open", "store closed"]);
  });

  it.each(["before", "after"])(
    "stops only the calls to a broken shared object that is called %s the client's own object",
    async (place) => {
      const { state, decide } = overObjects();
      state.broken.add("global");
      const both = (client: string) =>
        place === "before" ? decide("global", client) : decide(client, "global");
      // The first failure may be attributed to the client's own object. The later failures are
      // attributed to the shared object.
      for (let call = 1; call <= 6; call++) await both(`client-${call}`);
      expect(await both("somebody")).toBe("circuit-open");
      expect(state.changes).toEqual(["object open"]);
      for (let call = 1; call <= 6; call++) expect(await decide(`client-${call}`)).toBe("done");
      expect(await decide("somebody")).toBe("done");
      const { calls } = state;
      expect(await both("somebody else")).toBe("circuit-open");
      expect(state.calls).toBe(calls);
      state.broken.clear();
      state.now += PAUSE_MS;
      expect(await both("somebody")).toBe("done");
      expect(state.changes).toEqual(["object open", "object closed"]);
    },
  );

  it("suspects the object that is called first, if all objects of a call have failed equally often", async () => {
    const { state, decide } = overObjects();
    state.broken.add("client");
    for (let call = 1; call <= 5; call++) await decide("client", "global");
    expect(await decide("client", "global")).toBe("circuit-open");
    expect(await decide("somebody", "global")).toBe("done");
  });

  it("stops the calls to the single object of a rule with the key global", async () => {
    const { state, decide } = overObjects();
    state.broken.add("global");
    for (let call = 1; call <= 5; call++) expect(await decide("global")).toBe("unreachable");
    expect(await decide("global")).toBe("circuit-open");
    expect(state.calls).toBe(5);
  });

  it("calls the objects of enforced rules even if the object of a rule in shadow mode fails", async () => {
    const { state, store, decide } = overObjects();
    state.broken.add("shadow");
    const shadow = counter({ identity: "shadow", shadow: true });
    for (let call = 0; call < 20; call++) {
      await Promise.allSettled(store.decide([[shadow]], NOW));
    }
    state.broken.clear();
    const enforced = counter({ identity: "a", limit: 1e6 });
    await expect(verdictOf(store.decide([[enforced], [shadow]], NOW))).resolves.toBeDefined();
    expect(await decide("b")).toBe("done");
  });

  it("counts the shards of one client as one object", async () => {
    const { state, decide } = overObjects();
    state.broken = new Set(["a#0", "a#1", "a#2", "a#3"]);
    const decideShard = (number: number) =>
      decide({ identity: `a#${number}`, shard: { client: "a", number } });
    for (const number of [0, 1, 2, 3, 0, 1]) await decideShard(number);
    expect(state.changes).toEqual(["object open"]);
    expect(await decideShard(2)).toBe("circuit-open");
    expect(await decide("b")).toBe("done");
  });

  it("stops only the calls for the client whose object fails", async () => {
    const { state, decide } = overObjects();
    state.broken.add("a");
    for (let call = 1; call <= 9; call++) await decide("a");
    expect(state.calls).toBe(5);
    expect(await decide("b")).toBe("done");
    expect(await decide("a")).toBe("circuit-open");
    state.now += PAUSE_MS;
    expect(await decide("a")).toBe("unreachable");
    expect(await decide("a")).toBe("circuit-open");
    expect(state.changes).toEqual(["object open"]);
  });

  it("resets the failures of an object that succeeds", async () => {
    const { state, decide } = overObjects();
    for (let round = 1; round <= 3; round++) {
      state.broken.add("a");
      for (let call = 1; call <= 4; call++) expect(await decide("a")).toBe("unreachable");
      state.broken.clear();
      expect(await decide("a")).toBe("done");
    }
    expect(state.changes).toEqual([]);
  });

  it("stops the calls to a broken shared object although calls to the clients' own objects succeed", async () => {
    const { state, decide } = overObjects();
    state.broken.add("global");
    for (let call = 1; call <= 20; call++) {
      await decide("a", "global");
      await decide("a");
    }
    expect(await decide("b", "global")).toBe("circuit-open");
    expect(await decide("a")).toBe("done");
    expect(state.changes).toEqual(["object open"]);
  });

  it("remembers the failures of a shared object while the own objects of many clients fail", async () => {
    const { state, decide } = overObjects();
    state.broken.add("global");
    for (let client = 0; client < 4; client++) await decide(`c${client}`, "global");
    await decide("well");
    for (let client = 0; client < 2000; client++) {
      state.broken.add(`f${client}`);
      await decide(`f${client}`);
      // An object's count of failures in a row is reset only by a success of that object.
      await decide("well");
      if (client % 200 === 0) await decide(`d${client}`, "global");
    }
    expect(await decide("z", "global")).toBe("circuit-open");
    expect(await decide("well")).toBe("done");
  });

  it("ignores the success of a call that needs no object", async () => {
    const { state, store, decide } = overObjects();
    state.broken = new Set(["a", "b", "c"]);
    for (const client of ["a", "a", "b", "b"]) await decide(client);
    await store.adjust([], NOW);
    await decide("c");
    expect(state.changes).toEqual(["store open"]);
    await expect(store.adjust([], NOW)).rejects.toMatchObject({ failure: "circuit-open" });
  });
});

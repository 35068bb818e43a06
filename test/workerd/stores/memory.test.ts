import { describe, expect, it } from "vitest";
import { memoryStore } from "../../../src/stores/memory.ts";
import { counter } from "../../suite/counters.ts";
import { storeSuite } from "../../suite/store-suite.ts";

storeSuite("memory", () => memoryStore());

describe("the memory store's bound", () => {
  it("refuses one counter more than it may hold rather than forget one", async () => {
    const store = memoryStore(2);
    const [first, second, third] = [counter(), counter(), counter()];
    await store.decide([[first, second]], 0);
    await expect(store.decide([[third]], 0)).rejects.toMatchObject({ failure: "full" });
    await expect(store.decide([[first]], 0)).resolves.toMatchObject({
      groups: [{ admitted: true, tallies: [{ count: 2 }] }],
    });
  });

  it("has room again when windows have ended", async () => {
    const store = memoryStore(2);
    await store.decide([[counter(), counter()]], 0);
    await expect(store.decide([[counter()]], 60_999)).rejects.toMatchObject({ failure: "full" });
    await expect(store.decide([[counter(), counter()]], 61_000)).resolves.toBeDefined();
  });
});

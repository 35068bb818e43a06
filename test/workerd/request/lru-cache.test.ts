import { describe, expect, it } from "vitest";
import { LruCache } from "../../../src/request/lru-cache.ts";

describe("a cache of recent results", () => {
  it("returns a result for exactly the same text", () => {
    const cache = new LruCache<number>(4);
    for (const [index, text] of ["a", "A", "", "__proto__", "a "].entries()) cache.set(text, index);
    expect(cache.get("a ")).toBe(4);
    expect(cache.get("__proto__")).toBe(3);
    expect(cache.get("constructor")).toBeUndefined();
  });

  it("never holds more results than its bound", () => {
    const cache = new LruCache<number>(100);
    for (let number = 0; number < 10_000; number++) {
      cache.set(`${number}`, number);
      expect(cache.size).toBeLessThanOrEqual(100);
    }
    expect(cache.size).toBeGreaterThanOrEqual(50);
    expect(cache.get("9999")).toBe(9999);
    expect(cache.get("0")).toBeUndefined();
  });

  it("keeps a result that is used often during a flood of other results", () => {
    const cache = new LruCache<number>(100);
    cache.set("paying", 1);
    for (let number = 0; number < 10_000; number++) {
      cache.set(`${number}`, number);
      expect(cache.get("paying")).toBe(1);
    }
  });
});

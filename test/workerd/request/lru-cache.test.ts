import { describe, expect, it } from "vitest";
import { LruCache } from "../../../src/request/lru-cache.ts";

describe("what was worked out of late", () => {
  it("is there again, by the very same text", () => {
    const recent = new LruCache<number>(4);
    for (const [index, text] of ["a", "A", "", "__proto__", "a "].entries())
      recent.set(text, index);
    expect(recent.get("a ")).toBe(4);
    expect(recent.get("__proto__")).toBe(3);
    expect(recent.get("constructor")).toBeUndefined();
  });

  it("never comes to more than the bound", () => {
    const recent = new LruCache<number>(100);
    for (let number = 0; number < 10_000; number++) {
      recent.set(`${number}`, number);
      expect(recent.size).toBeLessThanOrEqual(100);
    }
    expect(recent.size).toBeGreaterThanOrEqual(50);
    expect(recent.get("9999")).toBe(9999);
    expect(recent.get("0")).toBeUndefined();
  });

  it("stays as long as it is asked for, through a flood of others", () => {
    const recent = new LruCache<number>(100);
    recent.set("paying", 1);
    for (let number = 0; number < 10_000; number++) {
      recent.set(`${number}`, number);
      expect(recent.get("paying")).toBe(1);
    }
  });
});

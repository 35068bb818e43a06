import { describe, expect, it } from "vitest";
import { HOUR, MINUTE, onEveryStore } from "./on-every-store.ts";
import { storedAs } from "./stored-as.ts";

// These tests repeat Redis's recipe for a quota of 20 requests a minute. The recipe calls GET,
// compares the count, and then calls INCR and EXPIRE 59.

const minute = { name: "api", key: "header:x-api-key", limit: 20, window: "1m" };
const u123 = { headers: { "x-api-key": "u123" } };

onEveryStore("a quota of 20 a minute for an API key", (open) => {
  it("admits twenty, denies the next request, and admits twenty in the next minute", async () => {
    const system = open([minute]);
    expect(await system.admitted(45 * MINUTE, 22, u123)).toBe(20);
    expect(await system.admitted(45 * MINUTE, 1, { headers: { "x-api-key": "u124" } })).toBe(1);
    expect(await system.admitted(46 * MINUTE, 1, u123)).toBe(1);
  });

  it("is exact for simultaneous requests", async () => {
    const system = open([minute]);
    const decisions = Array.from({ length: 30 }, () => system.decide(45 * MINUTE, u123));
    const outcomes = (await Promise.all(decisions)).map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === "allowed")).toHaveLength(20);
  });

  it("counts minute 45 of two hours separately", async () => {
    const system = open([minute]);
    await system.take(45 * MINUTE, 20, u123);
    expect(await system.left(HOUR + 45 * MINUTE, u123)).toEqual([20]);
  });
});

onEveryStore("an hour from 3:00 PM to 3:59:59 PM", (open) => {
  it("is one window at 3:15 PM, and ends at 4 PM", async () => {
    const system = open([{ ...minute, window: "1h" }]);
    await system.take(15 * HOUR, 5, u123);
    await system.take(15.25 * HOUR, 5, u123);
    expect(await system.left(16 * HOUR - 1, u123)).toEqual([10]);
    expect(await system.left(16 * HOUR, u123)).toEqual([20]);
  });
});

onEveryStore("33 a minute and 2,000 an hour", (open) => {
  const both = {
    name: "api",
    key: "header:x-api-key",
    limits: [
      { limit: 33, window: "1m" },
      { limit: 2000, window: "1h" },
    ],
  };

  it("charges no hour for a request that the minute denies", async () => {
    const system = open([both]);
    expect(await system.admitted(0, 36, u123)).toBe(33);
    expect(await system.left(0, u123)).toEqual([0, 1967]);
  });

  it("admits 1,980 in an hour of full minutes", async () => {
    const system = open([both]);
    for (let at = 0; at < HOUR; at += MINUTE) await system.take(at, 33, u123);
    expect(await system.left(HOUR - 1, u123)).toEqual([0, 20]);
  });

  it("charges no minute for a request that the hour denies", async () => {
    const steady = { ...both, limits: [{ limit: 40, window: "1m" }, both.limits[1] as never] };
    const system = open([steady]);
    for (let at = 0; at < 50 * MINUTE; at += MINUTE) await system.take(at, 40, u123);
    expect(await system.take(50 * MINUTE, 1, u123)).toBe("denied");
    expect(await system.left(50 * MINUTE, u123)).toEqual([40, 0]);
    expect(await system.left(HOUR, u123)).toEqual([40, 2000]);
  });
});

describe("the recipe's key", () => {
  it("contains the number of the minute since 1970; the recipe uses 0 to 59 instead", () => {
    const [at45, later] = [1_700_001_900, 1_700_005_500].map(
      (now) => storedAs({ rules: [minute] }, "u123", now)[0],
    );
    expect(at45).toEqual({ key: "weir:api:1m:u123:28333365", expiresAt: 1_700_001_961 });
    expect(later?.key).toBe("weir:api:1m:u123:28333425");
  });
});

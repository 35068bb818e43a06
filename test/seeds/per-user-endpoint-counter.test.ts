import { describe, expect, it } from "vitest";
import { windowAt } from "../../src/engine/counter.ts";
import { HOUR, MINUTE, onEveryStore } from "./on-every-store.ts";
import { storedAs } from "./stored-as.ts";

// These tests repeat the example of a limiter that counts each user's requests to each endpoint
// with INCR. That limiter allows 5 requests a minute to /search.

const search = {
  name: "search",
  match: { paths: ["/search"] },
  key: ["custom:user", "path"],
  limit: 5,
  window: "1m",
};

onEveryStore("5 a minute for each user and endpoint", (open) => {
  it("admits five requests, and denies the sixth and seventh", async () => {
    const system = open([search]);
    const outcomes = [];
    for (let request = 1; request <= 7; request++) {
      outcomes.push((await system.decide(30, { user: "abc" })).outcome);
    }
    expect(outcomes).toEqual([...Array(5).fill("allowed"), "limited", "limited"]);
  });

  it("counts each user and each endpoint separately", async () => {
    const feed = { ...search, match: { paths: ["/search", "/feed"] } };
    const system = open([feed]);
    expect(await system.admitted(0, 6, { user: "abc" })).toBe(5);
    expect(await system.admitted(0, 6, { user: "xyz" })).toBe(5);
    expect(await system.admitted(0, 6, { user: "abc", path: "/feed" })).toBe(5);
    expect(await system.admitted(0, 1, { user: "abc" })).toBe(0);
  });

  it.each([
    [0, 4],
    [30, 4],
    [59, 4],
    [60, 5],
    [90, 5],
  ])("at second %i, after one request at second 0, has %i of five left", async (second, left) => {
    const system = open([search]);
    await system.decide(0, { user: "abc" });
    expect(await system.left(second, { user: "abc" })).toEqual([left]);
  });

  it("admits one of two simultaneous requests if quota for one request is left", async () => {
    const system = open([search]);
    const user = { user: "abc" };
    await system.admitted(0, 4, user);
    const both = await Promise.all([system.decide(0, user), system.decide(0, user)]);
    expect(both.map(({ outcome }) => outcome).sort()).toEqual(["allowed", "limited"]);
  });

  it("admits ten around the end of the minute: five at 00:58 and five at 01:02", async () => {
    const system = open([search]);
    expect(await system.admitted(58, 6, { user: "abc" })).toBe(5);
    expect(await system.admitted(62, 6, { user: "abc" })).toBe(5);
  });

  it("admits five around the end of the minute with a sliding window", async () => {
    const system = open([{ ...search, match: { paths: ["/login"] }, sliding: true }]);
    const from = { user: "abc", path: "/login" };
    expect(await system.admitted(58, 5, from)).toBe(5);
    expect(await system.admitted(62, 5, from)).toBe(0);
  });
});

describe("the number of a window", () => {
  it.each([
    [10, 170_000_010],
    [MINUTE, 28_333_335],
    [HOUR, 472_222],
  ])("is 1700000100 divided by a window of %i s, rounded down: %i", (length, expected) => {
    const window = { windowMs: length * 1000, offsetMs: 0 };
    expect(windowAt(1_700_000_100_000, window).index).toBe(expected);
  });

  it("comes after the user in the key, and the key expires a second after the window", () => {
    expect(storedAs({ rules: [search] }, "abc", 1_700_000_159)).toEqual([
      { key: "weir:search:1m:abc:28333335", expiresAt: 1_700_000_161 },
    ]);
  });
});

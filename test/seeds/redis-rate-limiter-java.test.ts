import { describe, expect, it } from "vitest";
import { defineConfig } from "../../src/config/index.ts";
import { windowAt } from "../../src/engine/counter.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import { StoreError } from "../../src/stores/store.ts";
import { figuresOf, onEveryStore } from "./on-every-store.ts";
import { storedAs } from "./stored-as.ts";

// These tests repeat the limits of RedisRateLimiter.java. A method may be called 5 times in 10 s.
// This is the limit either for all callers in total, or for each caller separately.

const rule = {
  name: "get-data",
  match: { paths: ["/data"] },
  key: "global",
  limit: 5,
  window: "10s",
};
const data = { path: "/data" };

onEveryStore("5 in 10 seconds", (open) => {
  it("allows five, denies until the tenth second, and allows five more", async () => {
    const system = open([rule]);
    expect(await system.admitted(0, 3, data)).toBe(3);
    expect(await system.admitted(7, 3, data)).toBe(2);
    expect(await system.admitted(9, 1, data)).toBe(0);
    expect(await system.admitted(10, 6, data)).toBe(5);
  });

  it("makes a denied request wait for the rest of the window", async () => {
    const system = open([rule]);
    await system.admitted(3, 5, data);
    const decision = await system.decide(3, data);
    expect(decision).toMatchObject({ outcome: "limited", retryAfterMs: 7000 });
    expect(figuresOf(decision)).toMatchObject({ remaining: 0, resetMs: 7000 });
  });

  it("counts all callers together, or each caller separately with another key", async () => {
    const [one, other] = ["a", "b"].map((user) => ({ ...data, user })) as [object, object];
    const global = open([rule]);
    expect(await global.admitted(0, 5, one)).toBe(5);
    expect(await global.admitted(0, 1, other)).toBe(0);
    const each = open([{ ...rule, key: "custom:user" }]);
    expect(await each.admitted(0, 5, one)).toBe(5);
    expect(await each.admitted(0, 1, other)).toBe(1);
  });
});

describe("the window of 1678900825 s", () => {
  it.each([
    [60, 1_678_900_800],
    [10, 1_678_900_820],
  ])("of %i s begins at %i s", (length, startsAt) => {
    const windowMs = length * 1000;
    const { endsAt } = windowAt(1_678_900_825_000, { windowMs, offsetMs: 0 });
    expect(endsAt - windowMs).toBe(startsAt * 1000);
  });

  it("has its number in a key that expires a second after its end", () => {
    const input = { prefix: "ratelimiter", rules: [rule] };
    expect(storedAs(input, "all", 1_678_900_825)).toEqual([
      { key: "ratelimiter:get-data:10s:all:167890082", expiresAt: 1_678_900_831 },
    ]);
  });
});

describe("failOpen", () => {
  it.each([
    ["open", true],
    ["closed", false],
  ] as const)("is onError %o: a request passes when Redis fails: %o", async (onError, open) => {
    const config = defineConfig({ rules: [{ ...rule, onError }] });
    const fail = () => Promise.reject(new StoreError("unreachable", "no connection"));
    const limiter = new Limiter(config, {
      decide: (groups) => groups.map(fail),
      adjust: fail,
      reset: fail,
    });
    const subjects = config.rules.map((each) => {
      return { rule: each, windows: each.windows, identity: "all" };
    });
    expect(await limiter.decide(subjects)).toMatchObject({ outcome: "undecided", open });
  });
});

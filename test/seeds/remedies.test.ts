import { expect, it } from "vitest";
import { limitedResponse } from "../../src/http/responses.ts";
import type { Limited } from "../../src/limiter/decision.ts";
import { onEveryStore } from "./on-every-store.ts";

// docs/how-it-counts.md lists remedies for a burst at the boundary of two windows. These tests run
// the rule of each remedy.

onEveryStore("five requests at 00:58 and five at 01:02", (open) => {
  const login = { name: "login", key: "global" };
  const fivePerMinute = { limit: 5, window: "1m" };

  it.each([
    ["all ten pass 5 a minute", [fivePerMinute], [5, 5]],
    ["five pass 5 in any minute", [{ ...fivePerMinute, sliding: true }], [5, 0]],
    [
      "four pass with a second window of 2 in 10 s",
      [fivePerMinute, { limit: 2, window: "10s" }],
      [2, 2],
    ],
    ["six pass 1 in 12 s with a capacity of 5", [{ limit: 1, window: "12s", capacity: 5 }], [5, 1]],
  ])("%s", async (_, limits, passed) => {
    const system = open([{ ...login, limits }]);
    expect([await system.admitted(58, 5), await system.admitted(62, 5)]).toEqual(passed);
  });

  it("a sliding window denies at 01:02 with the time until the next request passes", async () => {
    const system = open([{ ...login, ...fivePerMinute, sliding: true }]);
    await system.admitted(58, 5);
    expect(await system.decide(62)).toMatchObject({ outcome: "limited", retryAfterMs: 58_000 });
    expect(await system.admitted(119.999, 1)).toBe(0);
    expect(await system.admitted(120, 1)).toBe(1);
  });

  it("a capacity of 8 admits thirteen: 8 before the new window, and the limit of 5 in it", async () => {
    const system = open([{ ...login, ...fivePerMinute, capacity: 8 }]);
    expect([await system.admitted(58, 9), await system.admitted(62, 9)]).toEqual([8, 5]);
  });

  it("a spread start moves the start of the window for most clients", async () => {
    const system = open([{ ...login, ...fivePerMinute, key: "custom:user", start: "spread" }]);
    const users = Array.from({ length: 12 }, (_, index) => ({ user: `user-${index}` }));
    const passed = await Promise.all(
      users.map(async (user) => {
        return (await system.admitted(58, 5, user)) + (await system.admitted(62, 5, user));
      }),
    );
    expect(passed.filter((count) => count === 5).length).toBeGreaterThan(6);
  });

  it("quota reserved at 00:58 is not left at 01:02", async () => {
    const system = open([{ ...login, ...fivePerMinute, maxReserved: 5 }]);
    expect(await system.admitted(58, 5)).toBe(5);
    const reserved = await system.decide(58, {}, { cost: 5, reserve: true });
    expect(reserved).toMatchObject({ outcome: "allowed", reservationDelayMs: 2000 });
    expect(await system.admitted(62, 5)).toBe(0);
  });

  it("retryJitter gives denied clients different waits, all until quota is left or later", async () => {
    const system = open([{ ...login, ...fivePerMinute, retryJitter: "30s" }]);
    await system.admitted(18, 5);
    const limited = (await system.decide(18)) as Limited;
    const request = new Request("https://api.example.com/");
    const waits = Array.from({ length: 40 }, () =>
      Number(limitedResponse(request, limited, "none").headers.get("retry-after")),
    );
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(42);
    expect(Math.max(...waits)).toBeLessThanOrEqual(72);
    expect(new Set(waits).size).toBeGreaterThan(3);
  });
});

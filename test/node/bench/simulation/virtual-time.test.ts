import { describe, expect, it } from "vitest";
import { VirtualTime, WORLD } from "../../../../bench/simulation/virtual-time.ts";

const { now: realNow } = Date;
const realTimeout = globalThis.setTimeout;

describe("the virtual clock", () => {
  it("runs the events up to a time, and keeps the later ones for the next run", async () => {
    const time = new VirtualTime(1000);
    const seen: [string, number][] = [];
    for (const [name, at] of [
      ["c", 3000],
      ["a", 1500],
      ["b", 2000],
    ] as const) {
      time.at(at, WORLD, () => seen.push([name, Date.now()]));
    }
    await time.run(2000);
    expect(seen).toEqual([
      ["a", 1500],
      ["b", 2000],
    ]);
    await time.run();
    expect(seen.at(-1)).toEqual(["c", 3000]);
  });

  it("waits between two events until no promise can proceed", async () => {
    const time = new VirtualTime(0);
    const seen: string[] = [];
    time.at(1, WORLD, async () => {
      for (let turn = 0; turn < 100; turn++) await undefined;
      seen.push("first");
    });
    time.at(1, WORLD, () => seen.push("second"));
    await time.run();
    expect(seen).toEqual(["first", "second"]);
  });

  it("has timers, which the actor can stop", async () => {
    const time = new VirtualTime(0);
    const seen: number[] = [];
    time.at(5, WORLD, () => {
      setTimeout(() => seen.push(Date.now()), 10);
      clearTimeout(setTimeout(() => seen.push(-1), 1));
    });
    await time.run();
    expect(seen).toEqual([15]);
  });

  it("is not seen by other code of the thread", async () => {
    const time = new VirtualTime(0);
    const seen: number[] = [];
    const others = [
      new Promise<void>((resolve) => {
        setImmediate(() => resolve(void seen.push(Date.now())));
      }),
      new Promise<void>((resolve) => {
        setTimeout(() => resolve(void seen.push(Date.now())), 1);
      }),
    ];
    const startedAt = Date.now();
    for (let at = 0; at < 2000; at++) {
      time.at(at, WORLD, async () => {
        await undefined;
      });
    }
    await time.run();
    await Promise.all(others);
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(startedAt);
    expect(Date.now).toBe(realNow);
    expect(globalThis.setTimeout).toBe(realTimeout);
  });

  it("gives the thread its clock back when an event fails", async () => {
    const time = new VirtualTime(0);
    time.at(1, WORLD, () => {
      throw new Error("broken");
    });
    await expect(time.run()).rejects.toThrow("broken");
    expect(Date.now).toBe(realNow);
  });
});

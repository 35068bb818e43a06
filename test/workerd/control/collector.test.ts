import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Collector } from "../../../src/control/fan-in.ts";
import type { HandOver, HandOverAnswer } from "../../../src/control/protocol.ts";
import { validHandOver } from "../../../src/control/valid-hand-over.ts";
import { handOverOf, minuteAt } from "./hand-overs.ts";

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

const NOW = Date.now();
const GLOBAL_ANSWER: HandOverAnswer = {
  collectors: 3,
  overrides: { version: 5, isComplete: true, set: [], removed: [] },
};

/** A collector whose parent remembers its calls. */
function collectorWith(parent: (handOver: HandOver) => Promise<HandOverAnswer>, name = "EU:17") {
  vi.useFakeTimers({ now: NOW });
  const calls: HandOver[] = [];
  const collector = new Collector(name, (handOver) => {
    calls.push(handOver);
    return parent(handOver);
  });
  const handOver = (sequence: number, more: Partial<HandOver> = {}) => {
    const minutes = [minuteAt(NOW, 1)];
    return collector.handOver(validHandOver(handOverOf(sequence, { minutes, ...more })));
  };
  const passedOn = () => calls.map(({ minutes }) => minutes[0]?.requests.requests ?? 0);
  return { calls, handOver, passedOn };
}

describe("a collector", () => {
  it("passes sums on over the hub of its location to the global object", async () => {
    const collector = env.WEIR_CONTROL.getByName("EU:17");
    const answer = await collector.handOver(handOverOf(1, { minutes: [minuteAt(NOW, 5)] }));
    const global = env.WEIR_CONTROL.getByName("global");
    expect(await global.totals()).toMatchObject({ requests: { requests: 5 }, isolates: 1 });
    expect(answer).toMatchObject({ collectors: 0, overrides: { isComplete: true } });
    const tables = await runInDurableObject(collector, (_, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master").toArray(),
    );
    expect(tables).toEqual([]);
  });

  it("calls its parent at once, and then at most once in 2.5 seconds", async () => {
    const { handOver, passedOn } = collectorWith(async () => GLOBAL_ANSWER);
    await handOver(1);
    await handOver(2, { overridesVersion: 5 });
    await handOver(3, { overridesVersion: 5 });
    expect(passedOn()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(2500);
    expect(passedOn()).toEqual([1, 2]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(passedOn()).toEqual([1, 2]);
  });

  it("repeats sums that its parent did not confirm, with the same number", async () => {
    let isDown = false;
    const { calls, handOver } = collectorWith(async () => {
      if (isDown) throw new Error("The object is overloaded.");
      return GLOBAL_ANSWER;
    });
    await handOver(1);
    isDown = true;
    await handOver(2, { overridesVersion: 5 });
    await vi.advanceTimersByTimeAsync(2500);
    await handOver(3, { overridesVersion: 5 });
    await vi.advanceTimersByTimeAsync(2500);
    isDown = false;
    await vi.advanceTimersByTimeAsync(5000);
    expect(calls.map(({ sequence, minutes }) => [sequence, minutes[0]?.requests.requests])).toEqual(
      [
        [1, 1],
        [2, 1],
        [2, 1],
        [2, 1],
        [3, 1],
      ],
    );
  });

  it("answers with the overrides that it has, and with their age, if its parent fails", async () => {
    let isDown = false;
    const { handOver } = collectorWith(async () => {
      if (isDown) throw new Error("The object is overloaded.");
      return GLOBAL_ANSWER;
    });
    await handOver(1);
    isDown = true;
    await vi.advanceTimersByTimeAsync(8000);
    const answer = await handOver(2);
    expect(answer).toMatchObject({ overridesAgeMs: 8000, overrides: { version: 5 } });
  });

  it("reports an override that has ended to an isolate that has a longer version of it", async () => {
    const override = {
      rule: "search",
      client: "one",
      effect: { kind: "blocked" },
      reason: "abuse",
      by: "token",
      setAt: NOW,
    } as const;
    const versions = [NOW + 3_600_000, NOW + 3000];
    let version = 5;
    const { handOver } = collectorWith(async ({ overridesVersion }) => {
      const [expiresAt] = versions.splice(0, 1);
      if (expiresAt === undefined) return { collectors: 3 };
      const isComplete = overridesVersion === 0;
      const set = [{ ...override, expiresAt }];
      return { collectors: 3, overrides: { version: version++, isComplete, set, removed: [] } };
    });
    await handOver(1);
    await vi.advanceTimersByTimeAsync(2500);
    await handOver(2, { overridesVersion: 5 });
    await vi.advanceTimersByTimeAsync(1000);
    const { overrides } = await handOver(3, { overridesVersion: 5 });
    const removed = ["search:one"];
    expect(overrides).toEqual({ version: 6, isComplete: false, set: [], removed });
  });

  it("sends all overrides to isolates if it has missed changes itself", async () => {
    const versions = [5, 20];
    const { handOver } = collectorWith(async () => {
      const [version] = versions.splice(0, 1);
      if (version === undefined) return { collectors: 3 };
      return { collectors: 3, overrides: { version, isComplete: true, set: [], removed: [] } };
    });
    await handOver(1);
    await vi.advanceTimersByTimeAsync(2500);
    // This isolate has called the global object before, and has an override that the collector never had.
    const { overrides } = await handOver(2, { overridesVersion: 12 });
    expect(overrides).toEqual({ version: 20, isComplete: true, set: [], removed: [] });
  });

  it("refuses to answer before it has overrides, and counts the repeated sums once", async () => {
    let isDown = true;
    const { handOver, passedOn } = collectorWith(async () => {
      if (isDown) throw new Error("The object is overloaded.");
      return GLOBAL_ANSWER;
    });
    await expect(handOver(1)).rejects.toThrow("cannot reach");
    isDown = false;
    await vi.advanceTimersByTimeAsync(2500);
    await handOver(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(passedOn()).toEqual([1, 1]);
  });

  it("ends a call to its parent that gets no answer", async () => {
    const { handOver, calls } = collectorWith(() => new Promise(() => {}));
    const refused = expect(handOver(1)).rejects.toThrow("cannot reach");
    await vi.advanceTimersByTimeAsync(5000);
    await refused;
    await vi.advanceTimersByTimeAsync(5000);
    expect(calls.length).toBeGreaterThan(1);
  });
});

describe("a hub", () => {
  it("reduces the number of collectors to what its location needs, after 20 seconds", async () => {
    const { handOver } = collectorWith(async () => ({ ...GLOBAL_ANSWER, collectors: 50 }), "EU");
    const fromCollector = (sequence: number, isolates: number) =>
      handOver(sequence, { isolates, newIsolates: 0, overridesVersion: 5 });
    expect(await fromCollector(1, 1250)).toMatchObject({ collectors: 50 });
    await vi.advanceTimersByTimeAsync(19_000);
    expect(await fromCollector(2, 1250)).toMatchObject({ collectors: 50 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(await fromCollector(3, 1250)).toMatchObject({ collectors: 7 });
    // A number that is too small grows at once.
    expect(await fromCollector(4, 4000)).toMatchObject({ collectors: 20 });
  });

  it("begins with the number of the global object when isolates begin to use collectors", async () => {
    let collectors = 50;
    const { handOver } = collectorWith(async () => ({ ...GLOBAL_ANSWER, collectors }), "EU");
    const fromCollector = (sequence: number) =>
      handOver(sequence, { newIsolates: 0, overridesVersion: 5 });
    await fromCollector(1);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await fromCollector(2)).toMatchObject({ collectors: 1 });
    collectors = 0;
    await vi.advanceTimersByTimeAsync(2500);
    expect(await fromCollector(3)).toMatchObject({ collectors: 0 });
    collectors = 50;
    await vi.advanceTimersByTimeAsync(2500);
    expect(await fromCollector(4)).toMatchObject({ collectors: 50 });
  });
});

import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import type { Demand, GroupVerdict } from "../../../src/engine/counter.ts";
import {
  answersOf,
  type Entry,
  type EntryAnswer,
  type EntryStore,
  type Part,
  withBatches,
} from "../../../src/stores/batch.ts";
import { createUpstashEntries } from "../../../src/stores/upstash/upstash-store.ts";
import { bans, counter } from "../../suite/counters.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { verdictOf } from "../../suite/verdict.ts";

const TIMEOUT_MS = 1000;

/** A call that the store has received, and the functions that end it. */
interface Call {
  readonly entries: readonly Entry[];
  readonly answer: () => void;
  readonly fail: (error: unknown) => void;
}

/** Creates a store whose calls wait until the test ends them. Every group is admitted. */
function gated({ maxCalls = 1 } = {}) {
  const calls: Call[] = [];
  const entries: EntryStore = {
    run: (given) =>
      new Promise((resolve, reject) => {
        const answers = given.map(({ times, group }) =>
          Array.from({ length: times }, (_, index): EntryAnswer => {
            const tallies = [{ count: index + 1, resetMs: 1, banMs: 0 }];
            return group ? { decided: { now: 1, admitted: true, tallies } } : {};
          }),
        );
        calls.push({ entries: given, answer: () => resolve(answers), fail: reject });
      }),
  };
  const kept: Promise<unknown>[] = [];
  const options = { timeoutMs: TIMEOUT_MS, maxCalls, keepAlive: (task: never) => kept.push(task) };
  const store = withBatches(entries, options as never);
  const timesOf = ({ entries }: Call) => entries.map(({ times }) => times);
  return { store, calls, kept, sizes: () => calls.map(timesOf) };
}

describe("decisions that arrive together", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  const someone = counter();
  const others = Array.from({ length: 300 }, () => counter());
  const settle = () => vi.advanceTimersByTimeAsync(0);

  it("go at once while calls are free, and then together in the next call", async () => {
    const { store, calls, sizes } = gated({ maxCalls: 2 });
    for (const each of others.slice(0, 5)) verdictOf(store.decide([[each]]));
    await settle();
    expect(sizes()).toEqual([[1], [1]]);
    calls[1]?.answer();
    await settle();
    expect(sizes()).toEqual([[1], [1], [1, 1, 1]]);
  });

  it("are one entry if they are of the same shard", async () => {
    const { store, calls, sizes } = gated();
    const sharded = () => ({ ...someone, shard: { client: "client", number: 3 } });
    const answers = [sharded(), sharded(), sharded()].map((each) => store.decide([[each]]));
    await settle();
    calls[0]?.answer();
    await settle();
    expect(sizes()).toEqual([[1], [2]]);
    calls[1]?.answer();
    await Promise.all(answers.flat());
  });

  it("are one entry if they are equal, and the first to come are admitted first", async () => {
    const { store, calls, sizes } = gated();
    const first = verdictOf(store.decide([[someone]]));
    await settle();
    const burst = Array.from({ length: 1000 }, () => verdictOf(store.decide([[{ ...someone }]])));
    calls[0]?.answer();
    await first;
    await settle();
    expect(sizes()).toEqual([[1], [1000]]);
    calls[1]?.answer();
    const counts = (await Promise.all(burst)).map(({ groups }) => groups[0]?.tallies[0]?.count);
    expect(counts).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1));
  });

  it.each<[string, Partial<Demand>]>([
    ["another cost", { cost: 2 }],
    ["another ceiling", { ceiling: 4 }],
    ["a block", { block: 9 }],
    ["a ban", { ban: bans(1000) }],
    ["a check", { checkOnly: true }],
    ["the mode shadow", { shadow: true }],
    ["another reach", { reach: 9 }],
  ])("are entries of their own if they differ by %s", async (_, fields) => {
    const { store, calls, sizes } = gated();
    for (const each of [someone, someone, { ...someone, ...fields }])
      verdictOf(store.decide([[each]]));
    await settle();
    calls[0]?.answer();
    await settle();
    expect(sizes()).toEqual([[1], [1, 1]]);
  });

  it.each([
    [256, 1, [256, 43]],
    [128, 8, [128, 128, 43]],
  ])("fill calls with at most %i entries of %i counters", async (_, counters, expected) => {
    const { store, calls } = gated();
    for (const each of others) {
      const more = Array.from({ length: counters - 1 }, () => counter());
      verdictOf(store.decide([[each, ...more]]));
    }
    await settle();
    for (let sent = 0; sent < calls.length; sent++) {
      calls[sent]?.answer();
      await settle();
    }
    expect(calls.slice(1).map(({ entries }) => entries.length)).toEqual(expected);
  });

  it("leave after a quarter of the deadline although no call is free", async () => {
    const { store, sizes } = gated();
    for (const each of others.slice(0, 3)) verdictOf(store.decide([[each]])).catch(() => {});
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 5);
    expect(sizes()).toEqual([[1]]);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS / 10);
    expect(sizes()).toEqual([[1], [1, 1]]);
  });

  it("have each their own deadline, from their arrival", async () => {
    const { store, calls } = gated();
    const ended: string[] = [];
    const note = (name: string) => (error: { failure?: string }) => {
      ended.push(`${name} ${error.failure}`);
    };
    verdictOf(store.decide([[others[0] as Demand]])).catch(note("first"));
    verdictOf(store.decide([[others[1] as Demand]])).catch(note("second"));
    await vi.advanceTimersByTimeAsync(200);
    const third = verdictOf(store.decide([[others[2] as Demand]]));
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 200);
    expect(ended).toEqual(["first timeout", "second timeout"]);
    calls[1]?.answer();
    await expect(third).resolves.toMatchObject({ groups: [{ admitted: true }] });
  });

  it("all fail if their call fails, and nothing is sent twice", async () => {
    const { store, calls, sizes } = gated();
    const failed = [0, 1, 2].map((at) => verdictOf(store.decide([[others[at] as Demand]])));
    const results = Promise.allSettled(failed);
    await settle();
    calls[0]?.fail(new Error("one"));
    await settle();
    calls[1]?.fail(new Error("two"));
    expect((await results).map((each) => (each as PromiseRejectedResult).reason.message)).toEqual([
      "one",
      "two",
      "two",
    ]);
    expect(sizes()).toEqual([[1], [1, 1]]);
  });

  it("are kept alive until their call ends", async () => {
    const { store, calls, kept } = gated();
    for (const each of others.slice(0, 4)) verdictOf(store.decide([[each]]));
    await settle();
    const isOver = vi.fn();
    Promise.all(kept).then(isOver);
    calls[0]?.answer();
    await settle();
    expect(isOver).not.toHaveBeenCalled();
    calls[1]?.answer();
    await settle();
    expect(isOver).toHaveBeenCalled();
  });

  it("leave once, although another request sends them before the request that opened the batch", async () => {
    const { store, sizes } = gated();
    verdictOf(store.decide([[others[0] as Demand]])).catch(() => {});
    await vi.advanceTimersByTimeAsync(2.8 * TIMEOUT_MS);
    const large = Array.from({ length: 1024 }, () => counter());
    verdictOf(store.decide([large])).catch(() => {});
    await vi.advanceTimersByTimeAsync(0.2 * TIMEOUT_MS + 1);
    // The first call is lost now. The next request needs a batch of its own, and lets the large one leave.
    verdictOf(store.decide([[others[1] as Demand]])).catch(() => {});
    // The timers run before the promise on which the large batch waits.
    vi.advanceTimersByTime(0.1 * TIMEOUT_MS);
    expect(sizes()).toEqual([[1], [1]]);
    await settle();
    expect(sizes()).toEqual([[1], [1]]);
  });

  it("do not wait for ever for calls that never end", async () => {
    const { store, sizes } = gated();
    verdictOf(store.decide([[others[0] as Demand]])).catch(() => {});
    await vi.advanceTimersByTimeAsync(3 * TIMEOUT_MS + 1);
    verdictOf(store.decide([[others[1] as Demand]])).catch(() => {});
    await settle();
    expect(sizes()).toEqual([[1], [1]]);
  });

  describe("with a busy client", () => {
    /** Sends a request of one client, so that its next request waits. */
    async function busy(maxCalls = 4) {
      const at = gated({ maxCalls });
      const send = (...group: Demand[]) => verdictOf(at.store.decide([group])).catch(() => {});
      send(someone);
      await settle();
      return { ...at, send };
    }

    it("wait for the call of their own client, and share the next one in one entry", async () => {
      const { calls, sizes, send } = await busy();
      for (let sent = 0; sent < 1000; sent++) send(someone);
      await settle();
      expect(sizes()).toEqual([[1]]);
      calls[0]?.answer();
      await settle();
      expect(sizes()).toEqual([[1], [1000]]);
    });

    it("of other clients leave before the busy client's, which arrived earlier", async () => {
      const { calls, sizes, send } = await busy();
      send(someone);
      for (const other of others.slice(0, 4)) send(other);
      await settle();
      expect(sizes()).toEqual([[1], [1], [1], [1]]);
      calls[1]?.answer();
      await settle();
      expect(calls[4]?.entries.map(({ group }) => group)).toEqual([[others[3]]]);
      calls[2]?.answer();
      await settle();
      expect(calls).toHaveLength(5);
      calls[0]?.answer();
      await settle();
      expect(calls[5]?.entries.map(({ group }) => group)).toEqual([[someone]]);
    });

    it("wait for each of their counters, and no later one with the same counter overtakes", async () => {
      const { calls, send } = await busy();
      const [own, another] = others as [Demand, Demand];
      send(own, someone);
      send(own);
      send(another);
      await settle();
      expect(calls.slice(1).map(({ entries }) => entries[0]?.group)).toEqual([[another]]);
      calls[0]?.answer();
      await settle();
      expect(calls[2]?.entries.map(({ group }) => group)).toEqual([[own, someone], [own]]);
    });

    it("wait no longer than a quarter of the deadline, also if the busy client's calls never end", async () => {
      const { sizes, send } = await busy();
      send(someone);
      send(someone);
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.2);
      expect(sizes()).toEqual([[1]]);
      await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 0.1);
      expect(sizes()).toEqual([[1], [2]]);
    });

    it("of a rule in shadow mode wait alone, not the enforced group of the same request", async () => {
      const { store, calls } = await busy();
      const answered: string[] = [];
      const [enforced, shadow] = store.decide([[others[0] as Demand], [someone]]);
      enforced?.then(() => answered.push("enforced"));
      shadow?.then(() => answered.push("shadow"));
      await settle();
      calls[1]?.answer();
      await settle();
      expect(answered).toEqual(["enforced"]);
      calls[0]?.answer();
      await settle();
      calls[2]?.answer();
      await settle();
      expect(answered).toEqual(["enforced", "shadow"]);
    });

    it("do not wait for returns of quota and charges after responses, which do not wait either", async () => {
      const { store, sizes, send } = await busy(8);
      const [own] = others as [Demand];
      const unused = [{ counter: own, quota: 1, window: 0 }];
      store.adjust([someone]).catch(() => {});
      store.adjust([own], undefined, unused).catch(() => {});
      store.decide([], undefined, unused);
      send(own);
      await settle();
      expect(sizes()).toHaveLength(1 + 4);
    });
  });
});

const { restUrl: url, restToken: token } = inject("redis");
const upstash = (clock: "store" | "edge") =>
  createUpstashEntries({ url, token, clock, timeoutMs: 10_000 });
const NOTHING = { unused: [], adjusted: [], removed: [], times: 1 };
const HOUR = 3_600_000;

/** Decides equal requests in one entry, in a Durable Object. */
async function inObject(group: Demand[], times: number, now: number): Promise<GroupVerdict[]> {
  const object = env.COUNTERS.getByName((group[0] as Demand).identity);
  const [result] = await object.run([{ ...NOTHING, now, group, times }]);
  return answersOf(group, (result?.parts ?? []) as readonly Part<GroupVerdict>[]);
}

/** Decides equal requests in one entry, in Redis. */
function inRedis(clock: "store" | "edge") {
  return async (group: Demand[], times: number, now: number): Promise<GroupVerdict[]> => {
    const [answers = []] = await upstash(clock).run([{ ...NOTHING, now, group, times }]);
    return answers.map(({ decided }) => decided as GroupVerdict);
  };
}

type Decide = ReturnType<typeof inRedis>;

describe.each<[string, Decide]>([
  ["Redis, with the clock of the store", inRedis("store")],
  ["Redis, with the clock edge", inRedis("edge")],
  ["a Durable Object", inObject],
])("equal requests in one entry, in %s", (name, decide) => {
  const quota = fc.record({
    limit: fc.integer({ min: 0, max: 12 }),
    more: fc.integer({ min: 0, max: 5 }),
    cost: fc.integer({ min: 0, max: 4 }),
    used: fc.integer({ min: 0, max: 12 }),
    kind: fc.constantFrom("plain", "rolling", "banning", "escalating", "checked"),
  });

  type Quota = typeof quota extends fc.Arbitrary<infer Value> ? Value : never;

  /** Creates the same new counters twice, with the same quota used. */
  async function create(quotas: Quota[], now: number) {
    const identities = [crypto.randomUUID(), crypto.randomUUID()];
    const [one, other] = identities.map((identity) =>
      quotas.map(
        ({ limit, more, cost, kind }, index): Demand => ({
          ...counter({ key: `test:rule${index}:1h:${identity}`, identity, limit, windowMs: HOUR }),
          ceiling: limit + (kind === "rolling" ? more : 0),
          cost,
          ...(kind === "rolling" && { rollsOver: true }),
          ...(kind === "banning" && { ban: bans(HOUR) }),
          ...(kind === "escalating" && {
            ban: { lengthsMs: [HOUR, 2 * HOUR], forgetAfterMs: HOUR },
          }),
          ...(kind === "checked" && { checkOnly: true }),
        }),
      ),
    ) as [Demand[], Demand[]];
    for (const group of [one, other]) {
      for (const [index, each] of group.entries()) {
        const { used } = quotas[index] as { used: number };
        const { checkOnly, ...charged } = each;
        const cost = Math.min(used, each.ceiling);
        if (cost > 0) await decide([{ ...charged, cost }], 1, now);
      }
    }
    return [one, other] as const;
  }

  const withoutTimes = ({ admitted, tallies }: GroupVerdict) => ({
    admitted,
    tallies: tallies.map(({ count, banMs }) => ({ count, isBanned: banMs > 0 })),
  });

  it("are decided as if they came one after the other", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(quota, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 2, max: 9 }),
        async (quotas, times) => {
          const now = Math.ceil(Date.now() / HOUR) * HOUR;
          const [one, other] = await create(quotas, now);
          const inTurn: GroupVerdict[] = [];
          for (let sent = 0; sent < times; sent++) inTurn.push(...(await decide(one, 1, now)));
          const together = await decide(other, times, now);
          const denied = inTurn.find(({ admitted }) => !admitted);
          // Later denials of a client may report a ban that its first denial has begun.
          const first = (verdicts: GroupVerdict[]) =>
            verdicts.filter((each) => each.admitted).map(withoutTimes);
          expect(together).toHaveLength(times);
          expect(first(together)).toEqual(first(inTurn));
          const own = together.find(({ admitted }) => !admitted);
          expect(own && withoutTimes(own)).toEqual(denied && withoutTimes(denied));
          // The stored counters are also the same afterwards.
          expect((await decide(other, 1, now)).map(withoutTimes)).toEqual(
            (await decide(one, 1, now)).map(withoutTimes),
          );
        },
      ),
      propertyRuns(name === "a Durable Object" ? 40 : 120),
    );
  });
});

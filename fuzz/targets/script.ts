import fc from "fast-check";
import { engineStore } from "../../dev/engine-store.ts";
import { startRedis } from "../../dev/redis.ts";
import type { Store } from "../../src/stores/store.ts";
import { StoreError } from "../../src/stores/store-error.ts";
import { type Calls, callsFrom, drawn } from "../arbitraries/calls.ts";
import { pipelined } from "../pipelined.ts";
import { run } from "../property.ts";
import type { Effort, Outcome, Target } from "../target.ts";

/** By how much a ban may be over sooner than the engine says: Redis's clock goes on meanwhile. */
const SLACK_MS = 60_000;
/** Sequences after which an own Redis is emptied. */
const ROUND = 2000;
/** Where a window is short and this machine busy, Redis may forget a count: not three times. */
const TIMES = 3;

/** The script on Redis against its twin, in arbitrary calls; a case is a call. */
export const scriptTarget: Target = {
  name: "script",
  about: "the script on Redis answers each call as the engine does, in integers that are read",
  async check(effort) {
    const redis = await startRedis({ requireServer: true });
    try {
      return await checkScript(redis, effort, { isOwn: true });
    } finally {
      await redis.stop();
    }
  },
};

/** @param isOwn whether what Redis holds may be removed; if not, it is given keys that nobody else has */
export async function checkScript(
  redis: { host: string; port: number },
  { cases, seed }: Effort,
  { isOwn = false } = {},
): Promise<Outcome> {
  const { store, empty, close } = await pipelined(redis);
  const own = crypto.randomUUID();
  let [calls, sequences] = [0, 0];
  const test = fc.asyncProperty(drawn, async (case_) => {
    for (let time = 1; ; time++) {
      const sequence = callsFrom(case_, `${own}:${++sequences}:`);
      calls += sequence.length;
      const difference = await differenceIn(sequence, store);
      if (!difference) return;
      if (time === TIMES) throw new Error(difference);
    }
  });
  try {
    // The script becomes known, and calls are in order from now on.
    await store.reset([], 0);
    await store.adjust([], 0);
    await store.decide([], 0);
    for (let round = 0; calls < cases; round++) {
      const effort = { cases: roundOf(cases - calls), seed: seed + round };
      const { finding } = await run(test, effort);
      if (finding) return { cases: calls, finding };
      if (isOwn) await empty();
    }
  } finally {
    close();
  }
  return { cases: calls, note: `in ${sequences.toLocaleString("en")} sequences` };
}

/** Sequences for so many calls, at 40 each. */
function roundOf(calls: number): number {
  return Math.min(ROUND, Math.ceil(calls / 40));
}

/** What Redis says otherwise than the engine, if anything. */
async function differenceIn(calls: Calls, redis: Store): Promise<string | undefined> {
  const engine = engineStore();
  // All at once: they go out in one pipeline, and Redis takes them in turn.
  const answers = calls.map((call) => ask(redis, call));
  for (const [index, answer] of (await Promise.all(answers)).entries()) {
    const expected = await ask(engine, calls[index] as Calls[number]);
    if (isSame(answer, expected)) continue;
    return `call ${index} is ${JSON.stringify(answer)}, but ${JSON.stringify(expected)} by the engine`;
  }
  return undefined;
}

async function ask(store: Store, call: Calls[number]): Promise<unknown> {
  try {
    switch (call.does) {
      case "decide":
        return await store.decide(call.groups, call.now, call.unused);
      case "adjust":
        return await store.adjust(call.counters, call.now);
      case "reset":
        return await store.reset(call.counters, call.now);
    }
  } catch (error) {
    return error instanceof StoreError ? { refused: error.message } : { error: String(error) };
  }
}

/** The same, but for bans that have grown shorter. */
function isSame(answer: unknown, expected: unknown, name = ""): boolean {
  if (name === "banMs" && Number(expected) > 0) {
    const over = Number(expected) - Number(answer);
    return over >= 0 && over <= SLACK_MS;
  }
  if (typeof expected !== "object" || typeof answer !== "object") return answer === expected;
  const [given, wanted] = [Object.entries(answer ?? {}), Object.entries(expected ?? {})];
  return (
    given.length === wanted.length &&
    wanted.every(([key, value]) => isSame((answer as Record<string, unknown>)[key], value, key))
  );
}

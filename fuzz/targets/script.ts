import fc from "fast-check";
import { createEngineStore } from "../../dev/engine-store.ts";
import { startRedis } from "../../dev/redis.ts";
import { windowAt } from "../../src/engine/counter.ts";
import { type Store, StoreError } from "../../src/stores/store.ts";
import { type Calls, callsFrom, scenario } from "../arbitraries/calls.ts";
import { createPipelinedStore } from "../pipelined-store.ts";
import { run } from "../property.ts";
import type { Outcome, RunOptions, Target } from "../target.ts";

/**
 * The maximum time by which a ban may be shorter in Redis than in the engine, in milliseconds. During a case, only the
 * engine's clock stands still.
 */
const MAX_BAN_DIFFERENCE_MS = 60_000;
/** The number of sequences after which the target empties its own Redis. */
const SEQUENCES_PER_ROUND = 2000;
/**
 * The maximum number of attempts for a sequence. On a busy machine, a short window may expire in Redis during a
 * sequence.
 */
const ATTEMPTS = 3;

/** Compares the script on Redis with the engine in arbitrary calls. Each call is a case. */
export const scriptTarget: Target = {
  name: "script",
  about: "the script on Redis answers each call as the engine does, with valid integers",
  async check(options) {
    const redis = await startRedis({ requireServer: true });
    try {
      return await checkScript(redis, options, { isOwn: true });
    } finally {
      await redis.stop();
    }
  },
};

/**
 * Compares a Redis with the engine in sequences of calls.
 *
 * @param isOwn whether this function may empty the Redis, which is not necessary, because each sequence uses new keys
 */
export async function checkScript(
  redis: { host: string; port: number },
  { cases, seed }: RunOptions,
  { isOwn = false } = {},
): Promise<Outcome> {
  const { store, empty, close } = await createPipelinedStore(redis);
  const runId = crypto.randomUUID();
  let [calls, sequences] = [0, 0];
  const test = fc.asyncProperty(scenario, async (drawn) => {
    for (let attempt = 1; ; attempt++) {
      const sequence = callsFrom(drawn, `${runId}:${++sequences}:`);
      calls += sequence.length;
      const difference = await differenceIn(sequence, store);
      if (!difference) return;
      if (attempt === ATTEMPTS) throw new Error(difference);
    }
  });
  try {
    // Redis loads the scripts during these calls. So no later call is repeated for a missing script, and all arrive in
    // order.
    await store.reset([], 0);
    await store.adjust([], 0);
    for (let round = 0; calls < cases; round++) {
      const options = { cases: sequencesFor(cases - calls), seed: seed + round };
      const { finding } = await run(test, options);
      if (finding) return { cases: calls, finding };
      if (isOwn) await empty();
    }
  } finally {
    close();
  }
  return { cases: calls, note: `in ${sequences.toLocaleString("en")} sequences` };
}

/** Returns the number of sequences for a number of calls. A sequence has 40 calls on average. */
function sequencesFor(calls: number): number {
  return Math.min(SEQUENCES_PER_ROUND, Math.ceil(calls / 40));
}

/** Describes the first answer in which Redis differs from the engine. */
async function differenceIn(calls: Calls, redis: Store): Promise<string | undefined> {
  const engine = createEngineStore();
  // All calls go out in one pipeline, and Redis executes them in their order.
  const answers = calls.map((call) => send(redis, call));
  let latestMs = 0;
  for (const [index, answer] of (await Promise.all(answers)).entries()) {
    const call = calls[index] as Calls[number];
    latestMs = Math.max(latestMs, call.now);
    const expected = await send(engine, call);
    if (isSame(answer, expected, { mayResetLater: mayResetLater(call, latestMs) })) continue;
    return `call ${index} returns ${JSON.stringify(answer)}, but the engine ${JSON.stringify(expected)}`;
  }
  return undefined;
}

async function send(store: Store, call: Calls[number]): Promise<unknown> {
  try {
    switch (call.method) {
      case "decide":
        return await Promise.all(store.decide(call.groups, call.now, call.unused));
      case "adjust":
        return await store.adjust(call.counters, call.now);
      case "reset":
        return await store.reset(call.counters, call.now);
    }
  } catch (error) {
    return error instanceof StoreError ? { refused: error.message } : { error: String(error) };
  }
}

/**
 * Whether Redis may report a later reset than the engine. The script knows the ends of only three calendar windows.
 * After the clock has stepped back, the last charge of a counter can be in a later window, for which the script assumes
 * the longest length.
 */
function mayResetLater(call: Calls[number], latestMs: number): boolean {
  const counters = call.method === "decide" ? call.groups.flat() : call.counters;
  return counters.some(
    (counter) =>
      counter.calendar &&
      counter.rollsOver &&
      windowAt(latestMs, counter).index > windowAt(call.now, counter).index + 1,
  );
}

/**
 * Whether two answers are equal, except that a ban may be a little shorter.
 *
 * @param mayResetLater whether the reset may also be later than expected; it is never earlier
 */
function isSame(
  answer: unknown,
  expected: unknown,
  { name = "", mayResetLater = false } = {},
): boolean {
  if (name === "banMs" && Number(expected) > 0) {
    const shorterMs = Number(expected) - Number(answer);
    return shorterMs >= 0 && shorterMs <= MAX_BAN_DIFFERENCE_MS;
  }
  if (name === "resetMs" && mayResetLater) return Number(answer) >= Number(expected);
  if (typeof expected !== "object" || typeof answer !== "object") return answer === expected;
  const [actual, wanted] = [Object.entries(answer ?? {}), Object.entries(expected ?? {})];
  return (
    actual.length === wanted.length &&
    wanted.every(([name, value]) =>
      isSame((answer as Record<string, unknown>)[name], value, { name, mayResetLater }),
    )
  );
}

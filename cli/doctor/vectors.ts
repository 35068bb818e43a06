import { randomUUID } from "node:crypto";
import { formatCount } from "../../src/admin/format.ts";
import { defaultClock } from "../../src/config/bindings.ts";
import { type Counter, type Demand, storedKey } from "../../src/engine/counter.ts";
import { type Answer as Decision, type Store, StoreError } from "../../src/stores/store.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";
import { errors, type UpstashClient } from "../../src/stores/upstash/wire.ts";
import { quoted } from "../print/text.ts";
import { type Examination, refusal, timeIn } from "./database.ts";
import { type DoctorFinding, finding } from "./findings.ts";
import type { CallFailure, Command, RestClient } from "./rest.ts";

/**
 * The length of the windows, in milliseconds. A run begins in the middle of a window, so that no window ends during
 * the run.
 */
const WINDOW_MS = 120_000;

/** The database as the vectors use it. */
interface LiveStore {
  /** Creates a counter that nothing has used. */
  counter(limit: number): Demand;
  /** Decides one group of counters, and describes the result, such as `admitted, 1 used`. */
  decide(...group: readonly Demand[]): Promise<string>;
  /** Returns the time until the key of a counter expires, in milliseconds; below 0 if it never expires. */
  ttlMs(counter: Counter): Promise<number>;
}

/** A series of decisions with the results that every store must return. */
interface Vector {
  readonly name: string;
  run(live: LiveStore): Promise<readonly string[]>;
  readonly expected: readonly string[];
}

/** Vectors are few, because each step is a call that takes time and is billed. */
const VECTORS: readonly Vector[] = [
  {
    name: "requests are charged up to the limit, and the next one is denied",
    async run({ counter, decide }) {
      const plain = counter(2);
      return [await decide(plain), await decide(plain), await decide(plain)];
    },
    expected: ["admitted, 1 used", "admitted, 2 used", "denied, 2 used"],
  },
  {
    name: "several counters are charged all or not at all",
    async run({ counter, decide }) {
      const [wide, narrow] = [counter(5), counter(1)];
      return [await decide(wide, narrow), await decide(wide, narrow), await decide(wide)];
    },
    expected: ["admitted, 1 and 1 used", "denied, 1 and 1 used", "admitted, 2 used"],
  },
  {
    name: "a key expires soon after its window",
    async run({ counter, decide, ttlMs }) {
      const plain = counter(1);
      const decision = await decide(plain);
      const left = await ttlMs(plain);
      return [
        decision,
        left > 0 && left <= 2 * WINDOW_MS ? "it expires" : `it expires in ${left} ms`,
      ];
    },
    expected: ["admitted, 1 used", "it expires"],
  },
];

/** Runs the vectors through Weir's own store, with the clock of the configuration. */
export async function checkVectors(examination: Examination): Promise<DoctorFinding[]> {
  const { url, token, rest, config } = examination;
  const { client, trace } = createScriptClient(rest);
  const clock = clockOf(config);
  // Longer than the client's own deadline, because the client's failure says more.
  const timeoutMs = 3 * rest.callTimeoutMs;
  const store = createUpstashStore({ url, token, clock, timeoutMs, client });
  const differences: string[] = [];
  try {
    const live = await liveStore(examination, store);
    for (const { name, run, expected } of VECTORS) {
      const actual = await run(live);
      const step = expected.findIndex((each, index) => each !== actual[index]);
      if (step === -1) continue;
      differences.push(`"${name}": step ${step + 1}: ${actual[step]}, expected ${expected[step]}`);
    }
  } catch (error) {
    // If a call fails, the store throws its own error, which does not contain the reason.
    if (trace.failure) throw trace.failure;
    if (!(error instanceof StoreError)) throw error;
    return [failureFinding(error, trace.error, examination)];
  }
  const count = formatCount(VECTORS.length, "vector");
  return [
    differences.length > 0
      ? finding("vector-differs", `${differences.length} of ${count}: ${differences[0]}`)
      : finding("vectors-ok", `${count}, each as expected`),
  ];
}

function failureFinding(
  { failure, message }: StoreError,
  error: string | undefined,
  { config, token }: Examination,
): DoctorFinding {
  const reason = quoted(error ?? message, [token]);
  if (/^NOPERM\b.*\beval(?:sha)?\b/i.test(reason)) return finding("scripts-refused", reason);
  if (clockOf(config) === "edge" && /\b(shebang|flags?)\b/i.test(reason)) {
    return finding("script-flag-refused", reason);
  }
  return refusal(reason) ?? finding("vectors-failed", `${failure}: ${reason}`);
}

function clockOf({ clock = defaultClock("upstash") }: Examination["config"]) {
  return clock;
}

async function liveStore(
  { rest, config, ownPrefix, writtenKeys }: Examination,
  store: Store,
): Promise<LiveStore> {
  const answer = await rest.run(["TIME"]);
  const redisMs = "reply" in answer ? timeIn(answer.reply) : undefined;
  // With the clock "store", the store ignores this time, but it must be within the windows.
  const now = Math.round((clockOf(config) === "store" && redisMs) || Date.now());
  // The time of a decision may differ from TIME, for example behind a faulty proxy.
  let decidedAt = now;
  const keyOf = (counter: Counter) => storedKey(counter, decidedAt);
  return {
    counter(limit) {
      const identity = randomUUID();
      const counter = {
        key: `${ownPrefix}:vector:1m:${identity}`,
        identity,
        limit,
        ceiling: limit,
        cost: 1,
        windowMs: WINDOW_MS,
        offsetMs: (now - WINDOW_MS / 2) % WINDOW_MS,
      };
      writtenKeys.add(keyOf(counter));
      return counter;
    },
    async decide(...group) {
      const [decision] = (await Promise.all(store.decide([group], now))) as [Decision];
      decidedAt = decision.now;
      for (const counter of group) writtenKeys.add(keyOf(counter));
      const used = decision.tallies.map((tally) => tally?.count).join(" and ");
      return `${decision.admitted ? "admitted" : "denied"}, ${used} used`;
    },
    async ttlMs(counter) {
      const left = await rest.run(["PTTL", keyOf(counter)]);
      return "reply" in left ? Number(left.reply) : Number.NaN;
    },
  };
}

/** The failures that a client for scripts has met. */
interface Trace {
  /** The first call without a usable answer. */
  failure?: CallFailure;
  /** The last error of the database other than NOSCRIPT. */
  error?: string;
}

/**
 * Creates the client with which Weir's own store runs the vectors. It has the methods of Upstash's client, but bounds
 * answers, and keeps the reasons of failures.
 */
function createScriptClient(rest: RestClient): { client: UpstashClient; trace: Trace } {
  const trace: Trace = {};
  const run = async (name: string, script: string, keys: string[], args: readonly unknown[]) => {
    const command = [name, script, keys.length, ...keys, ...args] as unknown as Command;
    const answer = await rest.run(command).catch((error) => {
      trace.failure ??= error;
      throw error;
    });
    if ("reply" in answer) return answer.reply as never;
    if (!answer.error.startsWith("NOSCRIPT")) trace.error = answer.error;
    throw new errors.UpstashError(answer.error);
  };
  const client: UpstashClient = {
    eval: (script, keys, args) => run("EVAL", script, keys, args),
    evalsha: (digest, keys, args) => run("EVALSHA", digest, keys, args),
  };
  return { client, trace };
}

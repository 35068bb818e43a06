import { errors, Redis } from "@upstash/redis/cloudflare";
import { type Counter, type GroupVerdict, storedKey } from "../engine/fixed-window.ts";
import { type Clock, fixedWindowScript } from "./fixed-window-script.ts";
import type { Store, Verdict } from "./store.ts";
import { StoreError } from "./store-error.ts";

export interface UpstashOptions {
  /** The database's REST endpoint: UPSTASH_REDIS_REST_URL. */
  readonly url: string;
  /** UPSTASH_REDIS_REST_TOKEN. */
  readonly token: string;
  readonly clock: Clock;
  /** After this long a call is given up, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Counters in Upstash Redis: one call of one script per decision.
 *
 * EVALSHA, and EVAL when Redis answers NOSCRIPT, which it does before it has done anything. No
 * other failure is tried again: the first call may have been charged.
 */
export function upstashStore({ url, token, clock, timeoutMs }: UpstashOptions): Store {
  const script = fixedWindowScript(clock);
  let digest: string | undefined;
  const redis = new Redis({
    url,
    token,
    // The client's own defaults: five retries over 4.3 s, batching across requests, base64, guessing types.
    retry: { retries: 0 },
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
    responseEncoding: false,
    automaticDeserialization: false,
    signal: () => AbortSignal.timeout(timeoutMs),
  });

  async function run(keys: string[], args: number[]): Promise<unknown> {
    digest ??= await sha1(script);
    try {
      return await redis.evalsha(digest, keys, args);
    } catch (error) {
      // The client's error goes on to quote the command, so only its beginning can be trusted.
      if (!(error instanceof errors.UpstashError) || !error.message.startsWith("NOSCRIPT")) {
        throw error;
      }
      return await redis.eval(script, keys, args);
    }
  }

  return {
    async decide(groups, now = Date.now()) {
      const counters = groups.flat();
      const keys = counters.map((counter) => keyOf(counter, clock, now));
      const args = [clock === "edge" ? now : 0, ...groups.flatMap(argsOf)];
      try {
        return readReply(await run(keys, args), groups);
      } catch (error) {
        throw failureOf(error, counters);
      }
    },
  };
}

function keyOf(counter: Counter, clock: Clock, now: number): string {
  return clock === "edge" ? storedKey(counter, now) : counter.key;
}

function argsOf(counters: readonly Counter[]): number[] {
  return [
    counters.length,
    ...counters.flatMap(({ limit, cost, windowMs, offsetMs }) => [limit, cost, windowMs, offsetMs]),
  ];
}

/** Reads the script's reply, trusting nothing in it. */
function readReply(reply: unknown, groups: readonly (readonly Counter[])[]): Verdict {
  const integers = Array.isArray(reply) ? [...reply] : [];
  const next = (min: number, max: number): number => {
    const value: unknown = integers.shift();
    if (!Number.isSafeInteger(value)) throw nonsense();
    if ((value as number) < min || (value as number) > max) throw nonsense();
    return value as number;
  };
  const now = next(0, Number.MAX_SAFE_INTEGER);
  const verdicts = groups.map((counters): GroupVerdict => {
    const admitted = next(0, 1) === 1;
    const tallies = counters.map(({ windowMs }) => ({
      count: next(0, Number.MAX_SAFE_INTEGER),
      resetMs: next(1, windowMs),
    }));
    return { admitted, tallies };
  });
  if (integers.length > 0) throw nonsense();
  return { now, groups: verdicts };
}

function nonsense(): StoreError {
  return new StoreError("nonsense", "the script's reply is not the integers asked for");
}

/** The failure that a call's error stands for. */
function failureOf(error: unknown, counters: readonly Counter[]): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof errors.UpstashJSONParseError) {
    return new StoreError("nonsense", "the answer is not JSON");
  }
  if (error instanceof errors.UpstashError) {
    return new StoreError("refused", refusal(error, counters));
  }
  if (error instanceof DOMException && /^(Timeout|Abort)Error$/.test(error.name)) {
    return new StoreError("late", "no answer in time");
  }
  // The client stumbles over JSON that has neither a result nor an error; a connection that is
  // refused or breaks is a plain Error in workerd.
  return error instanceof TypeError ? nonsense() : new StoreError("unreachable", "no connection");
}

/**
 * What Redis said, as in `WRONGPASS invalid password`: without the command, which the client adds,
 * and without identities, for Redis may quote the command too.
 */
function refusal({ message }: Error, counters: readonly Counter[]): string {
  const said = message.replace(/, command was:.*$/s, "");
  return counters
    .reduce((text, { identity }) => text.replaceAll(identity, "…"), said)
    .slice(0, 200);
}

async function sha1(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

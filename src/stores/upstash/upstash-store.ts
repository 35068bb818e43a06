import { banKey, type Counter, storedKey } from "../../engine/counter.ts";
import { isShadow } from "../shadow-groups.ts";
import type { Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { adjustScript, resetScript } from "./adjust-script.ts";
import { decideScript } from "./decide-script.ts";
import type { Clock } from "./script.ts";
import { readTallies, readVerdict } from "./script-reply.ts";
import { createUpstashClient, errors } from "./upstash-client.ts";

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
export function createUpstashStore({ url, token, clock, timeoutMs }: UpstashOptions): Store {
  const redis = createUpstashClient({ url, token, timeoutMs });

  /** Runs a script over counters and reads its reply; `args` is what it takes behind the time. */
  function runner(script: string) {
    let digest: string | undefined;

    async function call(keys: string[], args: number[]): Promise<unknown> {
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

    return async function run<Result>(
      counters: readonly Counter[],
      now: number,
      args: number[],
      read: (reply: unknown) => Result,
    ): Promise<Result> {
      const keys = counters.flatMap((counter) => keysOf(counter, clock, now));
      try {
        return read(await call(keys, [clock === "edge" ? now : 0, ...args]));
      } catch (error) {
        throw failureOf(error, [token, ...counters.flatMap(identitiesOf)]);
      }
    };
  }

  const decide = runner(decideScript(clock));
  const adjust = runner(adjustScript(clock));
  const reset = runner(resetScript(clock));

  return {
    decide(groups, now = Date.now(), unused = []) {
      const counters = [...unused.map(({ counter }) => counter), ...groups.flat()];
      const args = [
        groups.length,
        unused.length,
        ...unused.flatMap(({ counter, quota, window }) => [...argsOf(counter), quota, window]),
        ...groups.flatMap((group) => [
          isShadow(group) ? -group.length : group.length,
          ...group.flatMap(argsOf),
        ]),
      ];
      return decide(counters, now, args, (reply) => readVerdict(reply, groups));
    },
    adjust(counters, now = Date.now()) {
      return adjust(counters, now, counters.flatMap(argsOf), (reply) =>
        readTallies(reply, counters),
      );
    },
    reset(counters, now = Date.now()) {
      return reset(counters, now, counters.flatMap(argsOf), () => undefined);
    },
  };
}

function keysOf(counter: Counter, clock: Clock, now: number): string[] {
  const keyOf = (each: Counter) => (clock === "edge" ? storedKey(each, now) : each.key);
  const keys = [keyOf(counter)];
  if (counter.banMs) keys.push(banKey(counter));
  if (counter.alternative) keys.push(keyOf(counter.alternative));
  return keys;
}

/** A shard's identity is the client's with `#` and a number behind it: first whole, then without. */
function identitiesOf({ identity, alternative }: Counter): string[] {
  const shards = alternative ? [identity, alternative.identity] : [identity];
  return [...shards, identity.replace(/#\d+$/, "")];
}

function argsOf(counter: Counter): number[] {
  const { limit, windowMs, offsetMs, cost, ceiling, block = 0, banMs = 0, alternative } = counter;
  const flag = (set = false) => Number(set);
  const kind = [flag(counter.rollsOver), flag(counter.checkOnly), block];
  const ban = [banMs, flag(counter.neverBans)];
  const other = alternative ? [1, alternative.limit, alternative.ceiling] : [0];
  return [limit, windowMs, offsetMs, cost, ceiling, ...kind, ...ban, ...other];
}

/**
 * The failure that a call's error stands for.
 *
 * @param hidden what is not to be told of it
 */
function failureOf(error: unknown, hidden: readonly string[]): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof errors.UpstashJSONParseError) {
    return new StoreError("invalid-reply", "the answer is not JSON");
  }
  if (error instanceof errors.UpstashError) {
    return new StoreError("error-reply", refusal(error, hidden));
  }
  if (error instanceof DOMException && /^(Timeout|Abort)Error$/.test(error.name)) {
    return new StoreError("timeout", "no answer in time");
  }
  // The client stumbles over JSON that has neither a result nor an error; a connection that is
  // refused or breaks is a plain Error in workerd.
  return error instanceof TypeError
    ? new StoreError("invalid-reply", "the answer has neither a result nor an error")
    : new StoreError("unreachable", "no connection");
}

/**
 * What Redis said, as in `WRONGPASS invalid password`: without the command, which the client adds,
 * and without token and identities, for Redis, or what is before it, may quote what it was sent.
 */
function refusal({ message }: Error, hidden: readonly string[]): string {
  const said = message.replace(/, command was:.*$/s, "");
  return hidden.reduce((text, secret) => text.replaceAll(secret, "…"), said).slice(0, 200);
}

async function sha1(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

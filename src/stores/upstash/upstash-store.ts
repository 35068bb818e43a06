import type { Counter } from "../../engine/counter.ts";
import {
  type BatchOptions,
  type Entry,
  type EntryAnswer,
  type EntryStore,
  withBatches,
} from "../batch.ts";
import type { Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { createDecideScript } from "./decide-script.ts";
import type { Clock } from "./script.ts";
import { argumentsOf, keysOf, withBanKeys } from "./script-arguments.ts";
import { readAnswers } from "./script-reply.ts";
import { createUpstashClient, type UpstashClient } from "./upstash-client.ts";
import { identitiesOf, replyError, toStoreError } from "./upstash-error.ts";
import { UpstashScript } from "./upstash-script.ts";

export interface UpstashOptions {
  /** The database's REST endpoint: UPSTASH_REDIS_REST_URL. */
  readonly url: string;
  /** The database's token: UPSTASH_REDIS_REST_TOKEN. */
  readonly token: string;
  readonly clock: Clock;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
  /** Sends the calls. @default Upstash's client */
  readonly client?: UpstashClient;
}

/** Creates the store for a program that needs no wrappers. */
export function createUpstashStore(options: UpstashOptions & Partial<BatchOptions>): Store {
  return withBatches(createUpstashEntries(options), { keepAlive: () => {}, ...options });
}

/**
 * Creates a store that keeps its counters in Upstash Redis. Each call is one REST call, which runs a
 * script.
 */
export function createUpstashEntries({
  url,
  token,
  clock,
  timeoutMs,
  client = createUpstashClient({ url, token, timeoutMs }),
}: UpstashOptions): EntryStore {
  const script = new UpstashScript(client, createDecideScript(clock));

  return {
    async run(entries) {
      const { keys, args } = scriptCallOf(entries, clock);
      const secrets = () => [token, ...entries.flatMap(countersOf).flatMap(identitiesOf)];
      try {
        const reply = await script.run(keys, args);
        const errorOf = (message: string) => replyError(message, secrets());
        const answers = readAnswers(reply, entries, clock, errorOf);
        throwIfAllFailed(answers);
        return answers;
      } catch (error) {
        throw toStoreError(error, secrets());
      }
    },
  };
}

/** Returns the KEYS and ARGV of the script that carries out entries: see `createDecideScript`. */
function scriptCallOf(entries: readonly Entry[], clock: Clock) {
  const time = Date.now();
  const keys: string[] = [];
  const args = [clock === "edge" ? time : 0, entries.length];
  const add = (counter: Counter, now: number) => {
    keys.push(...keysOf(counter, clock, now));
    args.push(...argumentsOf(counter, now));
  };
  for (const { now = time, unused, adjusted, removed, groups, times } of entries) {
    if (clock === "edge") args.push(now);
    args.push(unused.length);
    for (const { counter, quota, window } of unused) {
      add(counter, now);
      args.push(quota, window);
    }
    args.push(adjusted.length);
    for (const counter of adjusted) {
      const { chargedIn } = counter;
      add(counter, now);
      args.push(Number(chargedIn !== undefined), chargedIn ?? 0);
    }
    const inModes = removed.flatMap(withBanKeys);
    args.push(inModes.length);
    for (const counter of inModes) {
      add(counter, now);
      args.push(Number(counter.keepsCount ?? false));
    }
    args.push(times, groups.length);
    for (const group of groups) {
      args.push(group.length);
      for (const counter of group) add(counter, now);
    }
  }
  return { keys, args };
}

function countersOf({ unused, adjusted, removed, groups }: Entry): Counter[] {
  return [...unused.map(({ counter }) => counter), ...adjusted, ...removed, ...groups.flat()];
}

/**
 * If every entry has failed, so has the call: a database that is read-only fails each command of the script.
 *
 * @throws {StoreError} the first failure
 */
function throwIfAllFailed(answers: readonly (readonly EntryAnswer[])[]): void {
  let failure: StoreError | undefined;
  for (const [first] of answers) {
    const result = first?.failed ?? first?.adjusted ?? first?.groups[0];
    if (!(result instanceof StoreError)) return;
    failure ??= result;
  }
  if (failure) throw failure;
}

import type { Clock } from "../../config/bindings.ts";
import { inBothModes } from "../../engine/bans.ts";
import { type Counter, type Demand, MAX_COUNT } from "../../engine/counter.ts";
import { BLOCK_SHARE, EXPIRY_GRACE_MS } from "../../engine/fixed-window.ts";
import { SLOT_RETRY_MS } from "../../engine/slots.ts";
import {
  type BatchOptions,
  type Entry,
  type EntryAnswer,
  type EntryStore,
  withBatches,
} from "../batch.ts";
import { type Store, StoreError } from "../store.ts";
import { SCRIPT } from "./script.generated.ts";
import {
  ABORT_SHARE,
  argumentsOf,
  createUpstashClient,
  errors,
  identitiesOf,
  keysOf,
  readAnswers,
  replyError,
  type ScriptAnswers,
  toStoreError,
  type UpstashClient,
} from "./wire.ts";

/**
 * Returns a function that runs a Lua script in Upstash Redis, by its digest (EVALSHA). If Redis does not have the
 * script yet, it does nothing and answers NOSCRIPT. The script is then sent as text (EVAL). Other failures are not
 * retried, because a failed call may have charged counters. Both together are aborted when one would be, because slots
 * that they may have taken are given back afterwards. `sent` is the number of commands that were sent.
 */
function scriptRunner(client: UpstashClient, text: string, timeoutMs: number) {
  let digest: string | undefined;
  return async (keys: string[], args: number[]): Promise<{ reply: unknown; sent: number }> => {
    digest ??= await sha1(text);
    const sentAt = Date.now();
    try {
      return { reply: await client.evalsha(digest, keys, args), sent: 1 };
    } catch (error) {
      if (!isNoScript(error)) throw error;
      const leftMs = ABORT_SHARE * timeoutMs - Math.max(0, Date.now() - sentAt);
      return { reply: await client.eval(text, keys, args, Math.max(1, leftMs)), sent: 2 };
    }
  };
}

/**
 * The time in milliseconds for which keys are kept after their window if the Worker's clock determines the windows. The
 * clocks of two isolates may differ by as much: the one that is ahead sets the expiry of a key, and the other one must
 * still find it until its own clock shows the end of the window.
 */
export const EDGE_GRACE_MS = 30_000;

/** Returns the text of script.lua with its constants. */
function createScript(clock: Clock): string {
  // Without this flag, Upstash locks the whole database while a script runs; with the flag, only the declared keys.
  const flags = clock === "edge" ? "#!lua flags=allow-key-locking\n" : "";
  const graceMs = clock === "edge" ? EDGE_GRACE_MS : EXPIRY_GRACE_MS;
  const constants = [clock === "store", MAX_COUNT, graceMs, BLOCK_SHARE, SLOT_RETRY_MS];
  const names = "USES_REDIS_TIME, MAX_COUNT, EXPIRY_GRACE_MS, BLOCK_SHARE, SLOT_RETRY_MS";
  return `${flags}local ${names} = ${constants}\n${SCRIPT}`;
}

/** Only the start of the message comes from Redis, because the client appends the command to the message. */
function isNoScript(error: unknown): boolean {
  return error instanceof errors.UpstashError && error.message.startsWith("NOSCRIPT");
}

async function sha1(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

interface UpstashOptions {
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

/** Creates the store for a program that needs no wrappers around the store. */
export function createUpstashStore(options: UpstashOptions & Partial<BatchOptions>): Store {
  return withBatches(createUpstashEntries(options), { keepAlive: () => {}, ...options });
}

/** A store in Upstash Redis that also tells the price of a call. */
export interface UpstashEntries extends EntryStore {
  /** Like `run`. `commands` is the number that Upstash bills: what was sent, and what the script has called. */
  call(entries: readonly Entry[]): Promise<ScriptAnswers>;
}

/** Creates a store that keeps its counters in Upstash Redis. Each call is a REST call that runs a script. */
export function createUpstashEntries({
  url,
  token,
  clock,
  timeoutMs,
  client = createUpstashClient({ url, token, timeoutMs }),
}: UpstashOptions): UpstashEntries {
  const runScript = scriptRunner(client, createScript(clock), timeoutMs);

  async function call(entries: readonly Entry[]): Promise<ScriptAnswers> {
    const { keys, args } = scriptCallOf(entries, clock);
    const secrets = () => [token, ...identitiesOf(entries.flatMap(countersOf))];
    try {
      const { reply, sent } = await runScript(keys, args);
      const errorOf = (message: string) => replyError(message, secrets());
      const { answers, commands } = readAnswers(reply, entries, clock, errorOf);
      throwIfRefused(answers);
      return { answers, commands: sent + commands };
    } catch (error) {
      throw toStoreError(error, secrets());
    }
  }

  return { call, run: async (entries) => (await call(entries)).answers };
}

/** Returns the KEYS and ARGV of the script that carries out entries: see script.lua. */
function scriptCallOf(entries: readonly Entry[], clock: Clock) {
  const time = Date.now();
  const keys: string[] = [];
  const args = [clock === "edge" ? time : 0, entries.length];
  const add = (counter: Counter & Partial<Demand>, now: number) => {
    keys.push(...keysOf(counter, clock, now));
    args.push(...argumentsOf(counter, now));
  };
  for (const { now = time, unused, adjusted, removed, group = [], times } of entries) {
    if (clock === "edge") args.push(now);
    args.push(unused.length);
    for (const { counter, quota, window } of unused) {
      add(counter, now);
      args.push(quota, window);
    }
    args.push(adjusted.length);
    for (const counter of adjusted) {
      add(counter, now);
      args.push(...(counter.chargedIn === undefined ? [0] : [1, counter.chargedIn]));
    }
    const inModes = removed.flatMap(inBothModes);
    args.push(inModes.length);
    for (const counter of inModes) {
      add(counter, now);
      args.push(Number(counter.keepsCount ?? false));
    }
    args.push(group.length);
    for (const counter of group) add(counter, now);
    args.push(times);
  }
  return { keys, args };
}

function countersOf({ unused, adjusted, removed, group = [] }: Entry): Counter[] {
  return [...unused.map(({ counter }) => counter), ...adjusted, ...removed, ...group];
}

/**
 * The errors of Redis that say that it refuses the writes of all clients: it is full, a replica, cannot save, or does not
 * allow them to this token. Any other error of a command can have its cause in one client's key, such as a value of
 * another type.
 */
const REFUSES_ALL = /^(OOM|READONLY|MISCONF|NOREPLICAS|NOPERM)\b/;

/**
 * If every entry has failed because Redis refuses the writes of all clients, the call has failed as a whole. Any other
 * failure of an entry is its own, and must not open the breaker for other clients.
 *
 * @throws {StoreError} the first failure
 */
function throwIfRefused(answers: readonly (readonly EntryAnswer[])[]): void {
  let failure: StoreError | undefined;
  for (const [first] of answers) {
    const result = first?.failed ?? first?.adjusted ?? first?.decided;
    // An entry that only returns quota has no result.
    if (result === undefined) continue;
    if (!(result instanceof StoreError) || !REFUSES_ALL.test(result.message)) return;
    failure ??= result;
  }
  if (failure) throw failure;
}

import { errors, Redis } from "@upstash/redis/cloudflare";
import type { Clock } from "../../config/bindings.ts";
import { banKeys } from "../../engine/bans.ts";
import {
  type Counter,
  type Demand,
  longestWindowMs,
  MAX_COUNT,
  storedKey,
  type Tally,
  windowAt,
  windowStart,
} from "../../engine/counter.ts";
import { countsSlots } from "../../engine/slots.ts";
import { countedIn, countsSubWindows, type SlidingCounter } from "../../engine/sub-windows.ts";
import { answersOf, type Entry, type EntryAnswer, type Part } from "../batch.ts";
import { Deadline } from "../deadline.ts";
import { type Answer, type Group, StoreError } from "../store.ts";

/** A counter. Without a demand, its cost is 0: for example, a removal has no demand. */
type MaybeDemand = Counter & Partial<Demand>;

/** The KEYS of a counter, in the order that script.lua describes. */
export function keysOf(counter: Counter, clock: Clock, now: number): string[] {
  return [clock === "edge" ? storedKey(counter, now) : counter.key, ...banKeys(counter)];
}

/** The ARGV of a counter, in the order that script.lua describes. */
export function argumentsOf(counter: MaybeDemand, now: number): number[] {
  const { limit, windowMs, offsetMs, cost = 0, ceiling = limit, block = 0 } = counter;
  const flag = (set = false) => Number(set);
  const windows = counter.calendar ? [0, longestWindowMs(counter)] : [windowMs, offsetMs];
  const [kind, more] = countsSlots(counter)
    ? [2, counter.slot]
    : countsSubWindows(counter)
      ? [3, counter.subWindows]
      : [flag(counter.rollsOver), block];
  const { lengthsMs = [], forgetAfterMs = 0 } = counter.ban ?? {};
  const ban = [lengthsMs.length, flag(counter.neverBans), ...lengthsMs];
  if (counter.ban) ban.push(forgetAfterMs);
  const calendar = counter.calendar ? calendarArguments(counter, now) : [];
  return [
    limit,
    ...windows,
    cost,
    ceiling,
    kind,
    flag(counter.checkOnly),
    more,
    ...ban,
    ...calendar,
  ];
}

/** Returns the number of the previous window, and the starts of that window and of the next three windows. */
function calendarArguments(counter: Counter, now: number): number[] {
  const previous = windowAt(now, counter).index - 1;
  return [previous, ...[0, 1, 2, 3].map((number) => windowStart(counter, previous + number))];
}

// Reads the replies of the scripts. Every integer in a reply is checked, because the configured URL may belong to a
// server other than Redis.

/** Turns the message of a command's error into an error. */
type ErrorOf = (message: string) => StoreError;

/** What a call of the script has returned. */
export interface ScriptAnswers {
  /** For each entry, one answer for each of its requests. */
  readonly answers: readonly (readonly EntryAnswer[])[];
  /** The number of commands that the script has called. */
  readonly commands: number;
}

/**
 * Reads the reply of the script that carries out entries.
 *
 * @throws {StoreError} ("invalid-reply") unless the reply has exactly the expected integers
 */
export function readAnswers(
  reply: unknown,
  entries: readonly Entry[],
  clock: Clock,
  errorOf: ErrorOf,
): ScriptAnswers {
  const values = new ReplyReader(reply, errorOf);
  const storeNow = values.next(0, MAX_COUNT);
  const answers = entries.map((entry): EntryAnswer[] => {
    const { adjusted: counters, removed, group, times } = entry;
    const now = clock === "edge" ? (entry.now ?? storeNow) : storeNow;
    const adjusted = counters.length > 0 ? readAdjusted(counters, values, now) : undefined;
    const removal = removed.length > 0 ? values.nextOrError(1, 1) : undefined;
    const decided = group && readParts(group, times, now, values);
    return Array.from({ length: times }, (_, index) => ({
      ...(decided && { decided: decided[index] as Answer | StoreError }),
      ...(adjusted && { adjusted }),
      ...(removal instanceof StoreError && { failed: removal }),
    }));
  });
  const commands = values.next(0, MAX_COUNT);
  values.end();
  return { answers, commands };
}

function readAdjusted(
  counters: readonly Counter[],
  values: ReplyReader,
  now: number,
): Tally[] | StoreError {
  const verdict = values.nextOrError(1, 1);
  return verdict instanceof StoreError
    ? verdict
    : counters.map((counter) => readTally(counter, values, now));
}

function readParts(
  counters: Group,
  times: number,
  now: number,
  values: ReplyReader,
): (Answer | StoreError)[] {
  const parts: Part[] = [];
  let left = times;
  while (left > 0) {
    const admitted = values.nextOrError(0, left);
    if (admitted instanceof StoreError) {
      parts.push({ requests: left, answer: admitted });
      break;
    }
    const tallies = counters.map((counter) => readChargedTally(counter, admitted, values, now));
    const requests = admitted || left;
    parts.push({ requests, answer: { now, admitted: admitted > 0, tallies } });
    left -= requests;
  }
  return answersOf(counters, parts);
}

function readChargedTally(
  counter: Demand,
  admitted: number,
  integers: ReplyReader,
  now: number,
): Tally {
  const { cost, block, checkOnly } = counter;
  const tally = readTally(counter, integers, now);
  if (!admitted || checkOnly) {
    const charged = integers.next(0, 0);
    return block === undefined ? tally : { ...tally, charged };
  }
  const least = cost * admitted;
  const most = Math.max(least, block ?? 0);
  const charged = integers.next(least, most);
  return block === undefined ? tally : { ...tally, charged };
}

function readTally(counter: Counter, integers: ReplyReader, now: number): Tally {
  // A ban keeps its length even if the rule has a shorter ban now, so a longer time is accepted.
  const longestBanMs = counter.ban ? MAX_COUNT : 0;
  // The reset of a counter whose key has no window can be the end of a window after the current one.
  const mayBeLater = counter.rollsOver || countsSubWindows(counter);
  const tally = {
    count: integers.next(0, MAX_COUNT),
    resetMs: integers.next(1, mayBeLater ? MAX_COUNT : longestWindowMs(counter)),
    banMs: integers.next(0, longestBanMs),
  };
  if (countsSubWindows(counter)) return { ...tally, ...readRing(counter, integers, now) };
  return countsSlots(counter) ? { ...tally, isUncertain: true } : tally;
}

function readRing(counter: SlidingCounter, integers: ReplyReader, now: number) {
  const window = integers.next(Number.MIN_SAFE_INTEGER, MAX_COUNT);
  const counts = Array.from({ length: counter.subWindows + 1 }, () => integers.next(0, MAX_COUNT));
  return countedIn(counter, { window, counts }, now);
}

class ReplyReader {
  readonly #values: readonly unknown[];
  readonly #errorOf: ErrorOf;
  #at = 0;

  constructor(reply: unknown, errorOf: ErrorOf) {
    this.#values = Array.isArray(reply) ? reply : [];
    this.#errorOf = errorOf;
  }

  /** @throws {StoreError} ("invalid-reply") unless the next value is an integer from `min` to `max` */
  next(min: number, max: number): number {
    const value = this.#values[this.#at++];
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
      throw invalidReply();
    }
    return value as number;
  }

  /** Reads an integer or the message of an error. */
  nextOrError(min: number, max: number): number | StoreError {
    const value = this.#values[this.#at];
    if (typeof value !== "string") return this.next(min, max);
    this.#at++;
    return this.#errorOf(value);
  }

  /** @throws {StoreError} ("invalid-reply") if the reply has more values */
  end(): void {
    if (this.#at !== this.#values.length) throw invalidReply();
  }
}

function invalidReply(): StoreError {
  return new StoreError("invalid-reply", "the script's reply does not have the expected integers");
}

export { errors };

/** Sends scripts to Redis. */
export interface UpstashClient {
  evalsha(digest: string, keys: string[], args: number[]): Promise<unknown>;
  /** @param withinMs the time in milliseconds after which the call is aborted, as the default of {@link ABORT_SHARE} */
  eval(script: string, keys: string[], args: number[], withinMs?: number): Promise<unknown>;
}

/** A call is aborted after this multiple of a decision's deadline. */
export const ABORT_SHARE = 2;

interface UpstashClientOptions {
  /** The database's REST endpoint. */
  readonly url: string;
  readonly token: string;
  /** The deadline of a decision, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Creates Upstash's client. It sends each call as one HTTP request, never retries a call, and returns the reply
 * unchanged. The client takes 17 KiB of the bundle after gzip. Weir uses the whole client, because neither Upstash
 * nor other projects would test a reduced copy.
 */
export function createUpstashClient({
  url,
  token,
  timeoutMs,
}: UpstashClientOptions): UpstashClient {
  let abortMs = 0;
  let deadline: Deadline | undefined;
  const redis = new Redis({
    url,
    token,
    // Turns off the client's defaults, such as five retries over 4.3 s, batches of calls from several requests,
    // base64 replies, and guesses at the type of each value.
    retry: { retries: 0 },
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
    responseEncoding: false,
    automaticDeserialization: false,
    // Aborts a call that hangs. This frees the call's connection.
    signal: () => {
      const controller = new AbortController();
      const abort = () => controller.abort(new DOMException("no answer", "TimeoutError"));
      deadline = new Deadline(abortMs, abort);
      return controller.signal;
    },
  });
  /** @param begin begins a call, and so asks for its signal before it returns */
  const inTime = async <Result>(
    begin: () => Promise<Result>,
    withinMs = ABORT_SHARE * timeoutMs,
  ): Promise<Result> => {
    abortMs = withinMs;
    deadline = undefined;
    const call = begin();
    const own = deadline as Deadline | undefined;
    try {
      return await call;
    } finally {
      own?.clear();
    }
  };
  return {
    evalsha: (...args) => inTime(() => redis.evalsha(...args)),
    eval: (script, keys, args, withinMs) => inTime(() => redis.eval(script, keys, args), withinMs),
  };
}

/**
 * Converts an error of a call into a `StoreError`.
 *
 * @param secrets texts that the error's message must not contain
 */
export function toStoreError(error: unknown, secrets: readonly string[]): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof errors.UpstashJSONParseError) {
    return new StoreError("invalid-reply", "the answer is not JSON");
  }
  if (error instanceof errors.UpstashError) {
    return new StoreError("error-reply", publicMessage(error, secrets));
  }
  if (error instanceof DOMException && /^(Timeout|Abort)Error$/.test(error.name)) {
    return new StoreError("timeout", "no answer in time");
  }
  // The client throws a TypeError if the JSON has neither a result nor an error. In workerd, a
  // connection that is refused or breaks throws a plain Error.
  return error instanceof TypeError
    ? new StoreError("invalid-reply", "the answer has neither a result nor an error")
    : new StoreError("unreachable", "no connection");
}

/** Converts the message of a command that failed in a script. */
export function replyError(message: string, secrets: readonly string[]): StoreError {
  return new StoreError("error-reply", publicMessage({ message }, secrets));
}

/** The identities in the counters' keys, and the clients of shards, whose identities contain those of the clients. */
export function identitiesOf(counters: readonly Counter[]): string[] {
  const clients = counters.flatMap(({ shard }) => shard?.client ?? []);
  // The shards come first. Otherwise, the replacement of the client's identity would leave `#1`.
  return [...counters.map(({ identity }) => identity), ...clients];
}

/**
 * The error message of Redis, such as `WRONGPASS invalid password`, without the command that the client appends.
 * Redis, or a proxy in front of it, may quote the call. So the token and the identities are replaced by `…`.
 */
function publicMessage({ message }: Pick<Error, "message">, secrets: readonly string[]): string {
  const reply = message.replace(/, command was:.*$/s, "");
  return secrets.reduce((text, secret) => text.replaceAll(secret, "…"), reply).slice(0, 200);
}

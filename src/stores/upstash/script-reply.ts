import { type Counter, longestWindowMs, MAX_COUNT, type Tally } from "../../engine/counter.ts";
import { answersOf, type Entry, type EntryAnswer, type Part } from "../batch.ts";
import { type Answer, type Group, skipped } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Clock } from "./script.ts";

// Reads the replies of the scripts. Every integer in a reply is checked, because the configured URL
// may belong to a server that is not Redis.

/** The number in place of a dependent group that was skipped. */
const SKIPPED_GROUP = -1;

/** Turns the message of a command's error into an error. */
type ErrorOf = (message: string) => StoreError;

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
): EntryAnswer[][] {
  const values = new ReplyReader(reply, errorOf);
  const storeNow = values.next(0, MAX_COUNT);
  const answers = entries.map((entry): EntryAnswer[] => {
    const { adjusted: counters, removed, times } = entry;
    const now = clock === "edge" ? (entry.now ?? storeNow) : storeNow;
    const adjusted = counters.length > 0 ? readAdjusted(counters, values) : undefined;
    const removal = removed.length > 0 ? values.nextOrError(1, 1) : undefined;
    const groups = entry.groups.map((group, index) =>
      readParts(group, times, now, values, index > 0 ? SKIPPED_GROUP : 0),
    );
    return Array.from({ length: times }, (_, index) => ({
      groups: groups.map((each) => each[index] as Answer | StoreError),
      ...(adjusted && { adjusted }),
      ...(removal instanceof StoreError && { failed: removal }),
    }));
  });
  values.end();
  return answers;
}

function readAdjusted(counters: Group, values: ReplyReader): Tally[] | StoreError {
  const verdict = values.nextOrError(1, 1);
  return verdict instanceof StoreError
    ? verdict
    : counters.map((counter) => readTally(counter, values));
}

/** Reads the parts of a group, and returns the answer for each request. */
function readParts(
  counters: Group,
  times: number,
  now: number,
  values: ReplyReader,
  lowest: number,
): (Answer | StoreError)[] {
  const parts: Part[] = [];
  let left = times;
  while (left > 0) {
    const admitted = values.nextOrError(lowest, left);
    if (admitted instanceof StoreError || admitted === SKIPPED_GROUP) {
      const answer = admitted instanceof StoreError ? admitted : skipped(now);
      parts.push({ requests: left, answer });
      break;
    }
    const tallies = counters.map((counter) => readChargedTally(counter, admitted, values));
    const requests = admitted || left;
    parts.push({ requests, answer: { now, admitted: admitted > 0, tallies } });
    left -= requests;
  }
  return answersOf(counters, parts);
}

/** Reads a tally, and the quota charged, which follows the tally in the reply. */
function readChargedTally(counter: Counter, admitted: number, integers: ReplyReader): Tally {
  const { cost, block, checkOnly, alternative } = counter;
  const tally = readTally(counter, integers);
  if (!admitted || checkOnly) {
    const charged = integers.next(0, 0);
    return block === undefined ? tally : { ...tally, charged };
  }
  const least = cost * admitted;
  const most = Math.max(least, block ?? 0);
  const charge = integers.next(alternative ? -most : least, most);
  const charged = Math.abs(charge);
  if (charged < least) throw invalidReply();
  return {
    ...tally,
    ...(block !== undefined && { charged }),
    ...(charge < 0 && { inAlternative: true }),
  };
}

function readTally(counter: Counter, integers: ReplyReader): Tally {
  // A ban keeps its length even if the rule has a shorter ban now, so a longer time is accepted.
  const longestBanMs = counter.banMs ? MAX_COUNT : 0;
  // If a counter rolls over, its reset can be the end of a window after the current one.
  return {
    count: integers.next(0, MAX_COUNT),
    resetMs: integers.next(1, counter.rollsOver ? MAX_COUNT : longestWindowMs(counter)),
    banMs: integers.next(0, longestBanMs),
  };
}

/** Reads the values of a reply one after another. */
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

  /** Reads the message of an error, or else an integer. */
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

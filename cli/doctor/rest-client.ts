import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { quoted } from "./finding.ts";
import { OpenWrites } from "./open-writes.ts";
import {
  type Answer,
  CallFailure,
  networkError,
  readBounded,
  readJson,
  toAnswer,
} from "./rest-answer.ts";

/** A Redis command: its name and its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]];

/** Sends commands to a database over REST. Every call is bounded in time and in size. */
export interface RestClient {
  readonly callTimeoutMs: number;
  /** The calls that write and that the database has not answered. */
  readonly writes: OpenWrites;
  /** @throws {CallFailure} if there is no usable answer, or if the quota of commands is used up */
  run(command: Command): Promise<Answer>;
  /** Sends several commands in one HTTP request. @throws {CallFailure} as `run` */
  runAll(commands: readonly Command[]): Promise<Answer[]>;
}

export interface RestOptions {
  readonly url: string;
  readonly token: string;
  readonly callTimeoutMs: number;
  /** When it is aborted, no more calls begin, and the last call ends soon. */
  readonly stop: AbortSignal;
}

/** The maximum size of an answer. The largest answer is a page of SCAN with 1000 long names. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** How long a stopped run waits for the answer to its last call, in milliseconds. */
const LAST_CALL_MS = 1000;
/** The commands of the doctor that change keys. */
const WRITES = /^(?:SET|EVAL|EVALSHA)$/i;

export function createRestClient({ url, token, callTimeoutMs, stop }: RestOptions): RestClient {
  const base = url.replace(/\/+$/, "");
  const writes = new OpenWrites();

  async function send(path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      // A redirect would send the token to another server.
      redirect: "manual",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    return readJson(response, await readBounded(response, MAX_ANSWER_BYTES), token);
  }

  async function post(path: string, body: unknown, write?: string): Promise<unknown> {
    if (stop.aborted) throw new CallFailure("not-finished", String(stop.reason));
    const closing = new AbortController();
    const answer = send(path, body, closing.signal);
    if (write !== undefined) writes.add(write, answer, closing);
    try {
      return await withinDeadline(answer);
    } catch (error) {
      // A write stays open after its deadline, because the removal of the keys must come after it.
      if (write === undefined) closing.abort();
      if (error instanceof CallFailure) throw error;
      throw new CallFailure("unreachable", quoted(networkError(error), [token]));
    }
  }

  /** @throws {CallFailure} if the deadline of the call is over, or soon after the run is stopped */
  async function withinDeadline(answer: Promise<unknown>): Promise<unknown> {
    const ended = new AbortController();
    const { signal } = ended;
    const late = async () => {
      await delay(callTimeoutMs, undefined, { signal });
      throw new CallFailure("no-answer", `no complete answer within ${callTimeoutMs} ms`);
    };
    const stopped = async () => {
      if (!stop.aborted) await once(stop, "abort", { signal });
      await delay(LAST_CALL_MS, undefined, { signal });
      throw new CallFailure("not-finished", String(stop.reason));
    };
    const all = [answer, late(), stopped()];
    for (const each of all) each.catch(() => {});
    try {
      return await Promise.race(all);
    } finally {
      ended.abort();
    }
  }

  return {
    callTimeoutMs,
    writes,
    async run(command) {
      const [name] = command;
      const write = WRITES.test(name) ? name.toUpperCase() : undefined;
      return toAnswer(await post("/", command, write), token);
    },
    async runAll(commands) {
      const answer = await post("/pipeline", commands);
      if (!Array.isArray(answer)) return commands.map(() => toAnswer(answer, token));
      if (answer.length !== commands.length) {
        throw new CallFailure("not-a-rest-api", "the answer has the wrong number of entries");
      }
      return answer.map((entry) => toAnswer(entry, token));
    },
  };
}

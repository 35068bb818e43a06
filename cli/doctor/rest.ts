import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { quoted } from "../print/text.ts";
import type { FindingCode } from "./findings.ts";

/** The database's answer to a command. */
export type Answer = { readonly reply: unknown } | { readonly error: string };

/** Whether a value of an answer is a text or a number. Only these have a safe text form. */
export function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** A call without a usable answer. All later calls would fail too, so the run ends. */
export class CallFailure extends Error {
  readonly code: FindingCode;

  /** @param detail the message of the finding; contains no secret */
  constructor(code: FindingCode, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** An answer with more bytes than allowed. */
export class AnswerTooLarge extends CallFailure {
  constructor(maxBytes: number) {
    super("not-a-rest-api", `the answer is larger than ${maxBytes} bytes`);
  }
}

/**
 * Reads the body of a response.
 *
 * @throws {AnswerTooLarge} if it is longer than `maxBytes`
 */
export async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop cancels the body.
    if (bytes > maxBytes) throw new AnswerTooLarge(maxBytes);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * Parses the answer of the REST API.
 *
 * @throws {CallFailure} if the token is refused, or if the answer is not from the REST API
 */
function readJson({ status, headers }: Response, text: string, token: string): unknown {
  if (status === 401 || status === 403) {
    throw new CallFailure("token-wrong", `HTTP ${status}: ${quoted(errorIn(text), [token])}`);
  }
  try {
    const value: unknown = JSON.parse(text);
    // Upstash answers a failed command with 400, and a used-up quota with 400 or 429.
    if (status === 200 || (typeof value === "object" && value !== null && "error" in value)) {
      return value;
    }
  } catch {
    // The text is not JSON. The error below reports this.
  }
  const type = quoted(headers.get("content-type") ?? "no type", [token]);
  const redirect = status >= 300 && status < 400 ? ", a redirect" : "";
  throw new CallFailure("not-a-rest-api", `HTTP ${status}${redirect} with ${type}`);
}

function errorIn(text: string): string {
  try {
    const { error } = JSON.parse(text);
    return typeof error === "string" ? error : "no reason";
  } catch {
    return "no reason";
  }
}

/**
 * Reads one entry of a JSON answer.
 *
 * @throws {CallFailure} if it is no entry, or if the quota of commands is used up
 */
function toAnswer(entry: unknown, token: string): Answer {
  if (typeof entry === "object" && entry !== null) {
    if ("error" in entry && typeof entry.error === "string") {
      const error = quoted(entry.error, [token]);
      if (/max (?:daily )?requests? limit exceeded/i.test(error)) {
        throw new CallFailure("quota-used-up", error);
      }
      return { error };
    }
    if ("result" in entry) return { reply: entry.result };
  }
  throw new CallFailure("not-a-rest-api", "the answer has neither a result nor an error");
}

/**
 * Returns the reason for a network error. The message of Node's own error is always "fetch failed";
 * the cause of this error has the reason.
 */
export function networkError(error: unknown): string {
  const cause = causeOf(error);
  if (!(cause instanceof Error)) return String(cause);
  const code = "code" in cause ? `${cause.code}: ` : "";
  return `${code}${cause.message}`;
}

/** The errors of Node that occur before a request is sent. */
const NOT_SENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|ERR_SSL_\w+|\w*CERT\w*)$/;

/**
 * Whether the database may have run, or may still run, the command of a call that failed. For
 * example, a proxy may report an error although the database still works on the command.
 */
export function mayHaveRun(error: unknown): boolean {
  if (error instanceof CallFailure) return error.code !== "token-wrong";
  const cause = causeOf(error);
  return !(cause instanceof Error && "code" in cause && NOT_SENT.test(String(cause.code)));
}

function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}

/** A Redis command: its name and its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]];

/** Sends commands to a database over REST. Every call is bounded in time and in size. */
export interface RestClient {
  readonly callTimeoutMs: number;
  /** The names of writing commands without an answer. The database may still run them. */
  readonly unconfirmed: readonly string[];
  /** @throws {CallFailure} if there is no usable answer, or if the quota of commands is used up */
  run(command: Command): Promise<Answer>;
}

/** Waits for milliseconds, as `setTimeout` of `node:timers/promises` does. Rejects if the signal is aborted. */
export type Wait = (
  ms: number,
  value: undefined,
  options: { readonly signal: AbortSignal },
) => Promise<unknown>;

interface RestOptions {
  readonly url: string;
  readonly token: string;
  readonly callTimeoutMs: number;
  /** After its abort, no more calls begin, and the last call ends soon. */
  readonly stop: AbortSignal;
  /** Tests replace it. */
  readonly wait?: Wait | undefined;
}

/** The maximum size of an answer. INFO has the largest answer. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** How long a stopped run waits for the answer to its last call, in milliseconds. */
const LAST_CALL_MS = 1000;
/** The commands of the doctor that change keys. */
const WRITES = /^(?:SET|EVAL|EVALSHA)$/i;

export function createRestClient(options: RestOptions): RestClient {
  const { url, token, callTimeoutMs, stop, wait = delay } = options;
  const base = url.replace(/\/+$/, "");
  const unconfirmed: string[] = [];

  async function send(body: unknown, signal: AbortSignal): Promise<unknown> {
    const response = await fetch(`${base}/`, {
      method: "POST",
      // A redirect would send the token to another server.
      redirect: "manual",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    return readJson(response, await readBounded(response, MAX_ANSWER_BYTES), token);
  }

  async function post(body: unknown, write?: string): Promise<unknown> {
    if (stop.aborted) throw new CallFailure("not-finished", String(stop.reason));
    const closing = new AbortController();
    try {
      return await withinDeadline(send(body, closing.signal));
    } catch (error) {
      closing.abort();
      if (write !== undefined && mayHaveRun(error)) unconfirmed.push(write);
      if (error instanceof CallFailure) throw error;
      throw new CallFailure("unreachable", quoted(networkError(error), [token]));
    }
  }

  /** @throws {CallFailure} if the deadline of the call is over, or soon after the run is stopped */
  async function withinDeadline(answer: Promise<unknown>): Promise<unknown> {
    const ended = new AbortController();
    const { signal } = ended;
    const late = async () => {
      await wait(callTimeoutMs, undefined, { signal });
      throw new CallFailure("no-answer", `no complete answer within ${callTimeoutMs} ms`);
    };
    const stopped = async () => {
      if (!stop.aborted) await once(stop, "abort", { signal });
      await wait(LAST_CALL_MS, undefined, { signal });
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
    unconfirmed,
    async run(command) {
      const [name] = command;
      const write = WRITES.test(name) ? name.toUpperCase() : undefined;
      return toAnswer(await post(command, write), token);
    },
  };
}

import type { FindingCode } from "./codes.ts";
import { quoted } from "./finding.ts";

/** A Redis command: its name and its arguments. */
export type Command = readonly [name: string, ...args: (string | number)[]];

/** The database's answer to a command. */
export type Answer = { readonly reply: unknown } | { readonly error: string };

/** A call without a usable answer. All later calls would fail too, so the run ends. */
export class CallFailure extends Error {
  readonly code: FindingCode;

  /** @param detail the measured value of the finding; contains no secret */
  constructor(code: FindingCode, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Sends commands to a database over REST. Every call is bounded in time and in size. */
export interface RestClient {
  readonly callTimeoutMs: number;
  /** @throws {CallFailure} if there is no usable answer, or if the quota of commands is used up */
  run(command: Command): Promise<Answer>;
  /** Sends several commands in one HTTP request. @throws {CallFailure} as `run` */
  runAll(commands: readonly Command[]): Promise<Answer[]>;
}

export interface RestOptions {
  readonly url: string;
  readonly token: string;
  readonly callTimeoutMs: number;
  /** Ends all calls when it is aborted. */
  readonly stop: AbortSignal;
}

/** A page of SCAN with 1000 long names is the largest answer of a database. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export function createRestClient({ url, token, callTimeoutMs, stop }: RestOptions): RestClient {
  const base = url.replace(/\/+$/, "");

  async function post(path: string, body: unknown): Promise<unknown> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(callTimeoutMs)]);
    try {
      const response = await fetch(`${base}${path}`, {
        method: "POST",
        // A redirect would send the token to another server.
        redirect: "manual",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal,
      });
      return readJson(response, await readBounded(response, MAX_ANSWER_BYTES), token);
    } catch (error) {
      if (error instanceof CallFailure) throw error;
      if (stop.aborted) throw new CallFailure("not-finished", String(stop.reason));
      if (signal.aborted) {
        throw new CallFailure("no-answer", `no complete answer within ${callTimeoutMs} ms`);
      }
      throw new CallFailure("unreachable", quoted(networkError(error), [token]));
    }
  }

  function toAnswer(entry: unknown): Answer {
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

  return {
    callTimeoutMs,
    run: async (command) => toAnswer(await post("/", command)),
    async runAll(commands) {
      const answer = await post("/pipeline", commands);
      if (!Array.isArray(answer)) return commands.map(() => toAnswer(answer));
      if (answer.length !== commands.length) {
        throw new CallFailure("not-a-rest-api", "the answer has the wrong number of entries");
      }
      return answer.map(toAnswer);
    },
  };
}

/**
 * Reads the body of a response.
 *
 * @throws {CallFailure} if it is longer than `maxBytes`
 */
export async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop cancels the body.
    if (bytes > maxBytes) {
      throw new CallFailure("not-a-rest-api", `the answer is larger than ${maxBytes} bytes`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

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
    // The next line reports it.
  }
  const type = quoted(headers.get("content-type") ?? "no type");
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

/** Node reports every network error as "fetch failed", and the reason as its cause. */
export function networkError(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  const code = "code" in cause ? `${cause.code}: ` : "";
  return `${code}${cause.message}`;
}

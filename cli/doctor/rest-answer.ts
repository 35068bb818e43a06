import type { FindingCode } from "./codes.ts";
import { quoted } from "./finding.ts";

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

/** An answer with more bytes than allowed. A command that asks for less may get a smaller answer. */
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
export function readJson({ status, headers }: Response, text: string, token: string): unknown {
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
export function toAnswer(entry: unknown, token: string): Answer {
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

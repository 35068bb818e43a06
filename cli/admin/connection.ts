import { isReadableOnTheWay } from "../doctor/access.ts";
import { quoted } from "../doctor/finding.ts";
import { AnswerTooLarge, mayHaveRun, networkError, readBounded } from "../doctor/rest-answer.ts";
import type { Setting } from "../doctor/settings.ts";
import { AdminError, EXIT, MAYBE_MADE, wrongOptions } from "./admin-error.ts";
import { readAnswer } from "./answer.ts";
import { type CredentialOptions, findToken } from "./credential.ts";

/** Calls the admin API of one Worker. */
export interface Connection {
  /** The origin of the Worker's URL. */
  readonly place: string;
  /**
   * Calls the API, and never repeats a call.
   *
   * @param path below `/_weir/api/`, such as `rules`
   * @param field the field that a complete answer has. Origins also answer with JSON.
   * @throws {AdminError} with a reason that helps an operator
   */
  call<Answer>(
    method: string,
    path: string,
    field: keyof Answer & string,
    body?: object,
  ): Promise<Answer>;
}

/** The options that all commands for operators have. */
export interface ConnectionOptions extends CredentialOptions {
  readonly at: string;
  /** The option that has the URL, for messages. @default "--at" */
  readonly atOption?: string;
}

/** Calls that change nothing, although their method is POST. */
const READING = new Set(["peek", "explain"]);

/** A report of a year has fewer bytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** The deadline of a call, in milliseconds. It is longer than the longest `timeoutMs`. */
const CALL_TIMEOUT_MS = 20_000;

/**
 * Reads the URL and the token. Makes no call.
 *
 * @throws {AdminError} if the token could be read on its way, or if there is none
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const { at, atOption = "--at" } = options;
  const base = readUrl(at, atOption);
  const token = await findToken(options);
  return {
    place: base.origin,
    async call(method, path, field, body) {
      const url = new URL(`/_weir/api/${path}`, base);
      const changes = method !== "GET" && !READING.has(path);
      const response = await send(url, { method, token, body, changes, atOption });
      const answer = { ...response, place: base.origin, token, body, changes, atOption };
      return readAnswer(answer, field);
    },
  };
}

function readUrl(at: string, option: string): URL {
  const url = /^https?:\/\//i.test(at) ? URL.parse(at) : null;
  // The URL is not printed, because it may have a password.
  if (!url) {
    throw wrongOptions(
      `${option} is not an http or https URL. Write the URL of the Worker, such as https://api.example.com.`,
    );
  }
  if (url.username || url.password) {
    throw wrongOptions(`The URL of ${option} has a user or a password. Leave them out.`);
  }
  if (isReadableOnTheWay(url)) {
    throw new AdminError(
      EXIT.unavailable,
      `The token was not sent: over http to ${url.host}, everyone on the network path could read it. Use https.`,
    );
  }
  return url;
}

interface Call {
  readonly method: string;
  readonly token: Setting;
  readonly body: object | undefined;
  /** Whether the call may change something. */
  readonly changes: boolean;
  readonly atOption: string;
}

async function send(url: URL, { method, token, body, changes, atOption }: Call) {
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      method,
      // A redirect would send the token to another server.
      redirect: "manual",
      headers: {
        authorization: `Bearer ${token.value}`,
        accept: "application/json",
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal,
    });
    return { response, text: await readBounded(response, MAX_ANSWER_BYTES) };
  } catch (error) {
    const reason =
      error instanceof AnswerTooLarge
        ? `${url.origin}: ${error.message}. It is not Weir's.`
        : signal.aborted
          ? `${url.origin} gave no complete answer within ${CALL_TIMEOUT_MS / 1000} s.`
          : unreachable(url, networkError(error), token, atOption);
    const isUncertain = changes && (signal.aborted || mayHaveRun(error));
    throw isUncertain
      ? new AdminError(EXIT.uncertain, `${reason} ${MAYBE_MADE}`)
      : new AdminError(EXIT.unavailable, reason);
  }
}

function unreachable(
  { origin, hostname }: URL,
  reason: string,
  { value }: Setting,
  option: string,
): string {
  const printed = quoted(reason, [value]);
  if (/ECONNREFUSED/.test(reason)) {
    const cure = /^(?:localhost|127\.|\[::1\])/.test(hostname)
      ? `Start the Worker, for example by npx wrangler dev, or name a deployed one: ${option} https://api.example.com`
      : "Compare the host and the port with those of the deployment";
    return `Nothing listens at ${origin}: the connection was refused. ${cure}.`;
  }
  if (/ENOTFOUND|EAI_/.test(reason))
    return `The name ${hostname} does not exist, or DNS does not answer (${printed}).`;
  if (/CERT|SSL|TLS|EPROTO/i.test(reason)) {
    return `There is no secure connection to ${origin}, so the token was not sent: ${printed}.`;
  }
  return `${origin} could not be reached: ${printed}.`;
}

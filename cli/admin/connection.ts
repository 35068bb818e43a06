import { NO_PATH } from "../../src/admin/admin-problem.ts";
import { CommandFailure } from "../command-failure.ts";
import { checkTokenForm, isReadableOnTheWay } from "../doctor/database.ts";
import { AnswerTooLarge, mayHaveRun, networkError, readBounded } from "../doctor/rest.ts";
import { readSettings, type Setting } from "../doctor/settings.ts";
import { printable, quoted } from "../print/text.ts";

/** The exit codes of the commands for operators. */
export const EXIT = {
  done: 0,
  /** The Worker has refused the change, or it has no such rule or override. */
  refused: 1,
  /** The Worker could not be asked, or it cannot carry out any change. Nothing was changed. */
  unavailable: 2,
  /** The Worker was asked for a change, and the change or a part of it may have been made. */
  uncertain: 3,
} as const;

/** What an operator can do about a change whose result is not known. */
export const MAYBE_MADE =
  "The change may have been made: look at it before you repeat the command.";

/** Returns the error for options that do not fit together. */
export function wrongOptions(message: string): CommandFailure {
  return new CommandFailure(EXIT.refused, message);
}

/** The first secret gives all rights, the second one only the right to read. */
const TOKEN_NAMES = ["WEIR_ADMIN_TOKEN", "WEIR_ADMIN_READ_TOKEN"] as const;

/** Where to look for the token. */
interface CredentialOptions {
  /** Weir's configuration. By default, wrangler's is in the same folder. @default "weir.config.ts" */
  readonly config?: string;
  readonly env?: string;
  readonly wrangler?: string;
}

/**
 * Finds the token of an operator. An environment variable comes before all files, even the variable of the token for
 * reading: if one is set, a deployment must not get the token of `.dev.vars`.
 *
 * @throws {CommandFailure} if there is no token, or if it cannot be sent in a header field
 */
export async function findToken({
  config = "weir.config.ts",
  env,
  wrangler,
}: CredentialOptions): Promise<Setting> {
  const token = fromEnvironment() ?? (await fromFiles(config, env, wrangler));
  if (!token) {
    throw new CommandFailure(
      EXIT.unavailable,
      `There is no token: neither ${TOKEN_NAMES.join(" nor ")} is set. Set one of them as an environment variable or in .dev.vars, to the same text as the secret of the Worker. If the Worker has none yet: npx wrangler secret put WEIR_ADMIN_TOKEN. \`npm run dev\` prints its token.`,
    );
  }
  const malformed = checkTokenForm("The token", token.value);
  if (malformed) {
    throw new CommandFailure(EXIT.unavailable, `${malformed.message} (from ${token.source}).`);
  }
  return token;
}

function fromEnvironment(): Setting | undefined {
  for (const name of TOKEN_NAMES) {
    const value = process.env[name]?.trim();
    if (value) return { value, source: `the environment variable ${name}` };
  }
  return undefined;
}

async function fromFiles(
  config: string,
  env?: string,
  wrangler?: string,
): Promise<Setting | undefined> {
  const settings = await readSettings(config, env, wrangler);
  for (const name of TOKEN_NAMES) {
    const found = settings(name);
    if (found) return { value: found.value, source: `${name} of ${found.source}` };
  }
  return undefined;
}

/** A call to a server that may have Weir's admin API. */
interface Call {
  /** The origin of the server's URL. */
  readonly place: string;
  readonly method: string;
  readonly token: Setting;
  readonly body: object | undefined;
  /** Whether the call may change something. */
  readonly changes: boolean;
  /** The name of the option with the URL, for messages. */
  readonly atOption: string;
}

interface RawAnswer extends Call {
  readonly response: Response;
  readonly text: string;
}

/**
 * Reads the JSON of an answer.
 *
 * @param field a field that the answer must have
 * @throws {CommandFailure} for an error of the API, and for the answer of any other server
 */
function readAnswer<Answer>(answer: RawAnswer, field: keyof Answer & string): Answer {
  const { response, text, place } = answer;
  const { status } = response;
  if (status >= 300 && status < 400) throw redirected(answer);
  const value = jsonIn(text);
  if (response.ok && value && field in value) return value as Answer;
  if (value && isProblem(response) && typeof value.detail === "string") {
    throw refused(answer, value.detail, value);
  }
  if (status === 429) {
    throw new CommandFailure(
      EXIT.unavailable,
      `${place} answered 429: there were too many attempts from this address${retryTime(response)}.`,
    );
  }
  // A proxy may give up while Weir makes the change, and an answer may break off.
  if (answer.changes && (response.ok || status >= 500)) {
    throw new CommandFailure(
      EXIT.uncertain,
      `${place} gave no complete answer of Weir (HTTP ${status}). ${MAYBE_MADE}`,
    );
  }
  throw new CommandFailure(EXIT.unavailable, notWeir(answer));
}

/** The maximum length of a message in an answer. Weir's longest messages name a cause and a cure. */
const MAX_MESSAGE = 350;

function refused(
  { response, token, changes }: RawAnswer,
  detail: string,
  { changed }: Record<string, unknown>,
): CommandFailure {
  const { status } = response;
  const lines = [printable(detail, [token.value]).slice(0, MAX_MESSAGE)];
  if (status === 404 && detail === NO_PATH) {
    lines.push("The Worker may be older than this command. Deploy it with this version of Weir.");
  }
  if (status === 403) {
    lines.push(
      `The token (${token.source}) may only read. For changes, set WEIR_ADMIN_TOKEN as an environment variable.`,
    );
  }
  if (status >= 500 && changes && changed !== false) {
    if (!/change was made/.test(detail)) lines.push(MAYBE_MADE);
    return new CommandFailure(EXIT.uncertain, lines.join("\n"));
  }
  const exitCode = status >= 500 || status === 429 ? EXIT.unavailable : EXIT.refused;
  return new CommandFailure(exitCode, lines.join("\n"));
}

function redirected({ response, place, token, atOption }: RawAnswer): CommandFailure {
  const location = response.headers.get("location") ?? "";
  const target = URL.canParse(location, place) ? new URL(location, place).origin : undefined;
  const where = target === undefined ? "" : ` to ${quoted(target, [token.value])}`;
  const login = /cloudflareaccess\.com$/.test(target ?? "")
    ? " Cloudflare Access protects this host: let a second application with the action Bypass cover /_weir/api/* and /_weir/doctor, or use the dashboard."
    : ` If Weir is there, name that URL with ${atOption}.`;
  return new CommandFailure(
    EXIT.unavailable,
    `${place} answered with a redirect (${response.status})${where}. The token was not sent there.${login}`,
  );
}

/** With a wrong token, Weir answers as if it had no admin API. So the reason for the answer is unknown. */
function notWeir({ response, text, place, token, atOption }: RawAnswer): string {
  const type = response.headers.get("content-type") ?? "";
  const kind =
    /html/i.test(type) || /^\s*<(?:!doctype|html)/i.test(text)
      ? "a page in HTML"
      : "another answer";
  return [
    `${place} answered like any server without Weir's admin API (HTTP ${response.status}, ${kind}).`,
    `With a wrong token, Weir answers as if the API did not exist. Check in this order:`,
    `  1. The token (${token.source}) is the same text as the secret of this deployment.`,
    "  2. The secret is set (npx wrangler secret list), has at least 32 characters, and only letters, digits and punctuation of ASCII. The two tokens differ.",
    `  3. ${atOption} leads to the Worker: its host and a route that includes /_weir/*.`,
    "  4. After several wrong tokens, Weir refuses all tokens of an address for a minute.",
    "  5. A Hono app with rateLimit(config) mounts weirAdmin(config) of edge-weir/admin before all other routes.",
  ].join("\n");
}

function retryTime({ headers }: Response): string {
  const seconds = headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(seconds) ? `. Try again in ${seconds} s` : "";
}

function isProblem({ headers }: Response): boolean {
  return /^application\/(?:problem\+)?json\b/i.test(headers.get("content-type") ?? "");
}

function jsonIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Calls the admin API of one Worker. */
export interface Connection {
  /** The origin of the Worker's URL. */
  readonly place: string;
  /**
   * Calls the API, and never repeats a call.
   *
   * @param path below `/_weir/api/`, such as `rules`
   * @param field a field that the answer must have, because origins answer with JSON too
   * @throws {CommandFailure} with a reason that helps an operator
   */
  call<Answer>(
    method: string,
    path: string,
    field: keyof Answer & string,
    body?: object,
  ): Promise<Answer>;
}

export interface ConnectionOptions extends CredentialOptions {
  readonly at: string;
  /** The name of the option with the URL, for messages. @default "--at" */
  readonly atOption?: string;
}

/** Calls that change nothing, although their method is POST. */
const READING = new Set(["peek", "explain", "denials"]);

/** The maximum size of an answer. Statistics of a year are smaller. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** The deadline of a call, in milliseconds. It is longer than most values of `timeoutMs`. */
const CALL_TIMEOUT_MS = 20_000;

/**
 * Reads the URL and the token. Makes no call.
 *
 * @throws {CommandFailure} if the URL would send the token without encryption, or if there is no token
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const { at, atOption = "--at" } = options;
  const base = readUrl(at, atOption);
  const token = await findToken(options);
  return {
    place: base.origin,
    async call(method, path, field, body) {
      const url = new URL(`/_weir/api/${path}`, base);
      const changes = method !== "GET" && !READING.has(path.split("?")[0] as string);
      const call = { place: base.origin, method, token, body, changes, atOption };
      return readAnswer(await send(url, call), field);
    },
  };
}

/** @throws {CommandFailure} if a token must not be sent to this URL */
export function readUrl(at: string, option: string): URL {
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
    throw new CommandFailure(
      EXIT.unavailable,
      `The token was not sent: over http to ${url.host}, everyone on the network path could read it. Use https.`,
    );
  }
  return url;
}

async function send(url: URL, call: Call): Promise<RawAnswer> {
  const { method, token, body, changes, atOption } = call;
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
    return { ...call, response, text: await readBounded(response, MAX_ANSWER_BYTES) };
  } catch (error) {
    const reason =
      error instanceof AnswerTooLarge
        ? `${url.origin}: ${error.message}. It is not Weir's.`
        : signal.aborted
          ? `${url.origin} gave no complete answer within ${CALL_TIMEOUT_MS / 1000} s.`
          : unreachable(url, networkError(error), token, atOption);
    const isUncertain = changes && (signal.aborted || mayHaveRun(error));
    throw isUncertain
      ? new CommandFailure(EXIT.uncertain, `${reason} ${MAYBE_MADE}`)
      : new CommandFailure(EXIT.unavailable, reason);
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

/** The output of a command: the API's answer for `--json`, and a text for people. */
export interface Printed {
  readonly json: unknown;
  readonly text: string;
}

/** Returns the error for an answer without a field that this version needs. */
export function otherForm(changes = false): CommandFailure {
  const message =
    "The answer has another form than expected. Compare the version of edge-weir in this project with that of the deployed Worker.";
  return changes
    ? new CommandFailure(EXIT.uncertain, `${message} ${MAYBE_MADE}`)
    : new CommandFailure(EXIT.unavailable, message);
}

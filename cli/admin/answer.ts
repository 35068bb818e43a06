import { printable, quoted } from "../doctor/finding.ts";
import type { Setting } from "../doctor/settings.ts";
import { AdminError, EXIT, MAYBE_MADE } from "./admin-error.ts";

/** An answer of a server that may be Weir's admin API. */
export interface RawAnswer {
  readonly response: Response;
  readonly text: string;
  /** The origin of the URL. */
  readonly place: string;
  readonly token: Setting;
  /** The body of the request. */
  readonly body: object | undefined;
  /** Whether the call may have changed something. */
  readonly changes: boolean;
  /** The option that has the URL, for messages. */
  readonly atOption: string;
}

/** A fault of one field in a body, see the API's description at /_weir/api/openapi.json. */
interface BodyFault {
  readonly path?: unknown;
  readonly message?: unknown;
}

/**
 * Reads the JSON of an answer.
 *
 * @param field a field that the answer must have
 * @throws {AdminError} for an error of the API, and for the answer of any other server
 */
export function readAnswer<Answer>(answer: RawAnswer, field: keyof Answer & string): Answer {
  const { response, text, place } = answer;
  const { status } = response;
  if (status >= 300 && status < 400) throw redirected(answer);
  const value = jsonIn(text);
  if (response.ok && value && field in value) return value as Answer;
  if (value && isProblem(response) && typeof value.detail === "string") {
    throw refused(answer, value.detail, value);
  }
  if (status === 429) {
    throw new AdminError(
      EXIT.unavailable,
      `${place} answered 429: there were too many attempts from this address${retryTime(response)}.`,
    );
  }
  // A proxy may give up while Weir still works, and an answer may break off.
  if (answer.changes && (response.ok || status >= 500)) {
    throw new AdminError(
      EXIT.uncertain,
      `${place} gave no complete answer of Weir (HTTP ${status}). ${MAYBE_MADE}`,
    );
  }
  throw new AdminError(EXIT.unavailable, notWeir(answer));
}

/** The maximum length of a message in an answer. Weir's longest ones name a cause and a cure. */
const MAX_MESSAGE = 350;

function refused(
  { response, token, body, changes }: RawAnswer,
  detail: string,
  { faults, changed }: Record<string, unknown>,
): AdminError {
  const { status } = response;
  const read = Array.isArray(faults)
    ? faults.slice(0, 20).map((each) => faultLine(each, body))
    : [];
  // The detail has the same faults, but with the names of the API's fields.
  const lines = (read.length > 0 ? read : [detail]).map((line) =>
    printable(line, [token.value]).slice(0, MAX_MESSAGE),
  );
  if (status === 403) {
    lines.push(
      `The token (${token.source}) may only read. For changes, set WEIR_ADMIN_TOKEN as an environment variable.`,
    );
  }
  if (status >= 500 && changes && changed !== false) {
    if (!/change was made/.test(detail)) lines.push(MAYBE_MADE);
    return new AdminError(EXIT.uncertain, lines.join("\n"), status);
  }
  const exitCode = status >= 500 || status === 429 ? EXIT.unavailable : EXIT.refused;
  return new AdminError(exitCode, lines.join("\n"), status);
}

/** The options that set the fields of bodies and queries. */
const OPTIONS: Readonly<Record<string, string>> = {
  expiresIn: "--for",
  reason: "--reason",
  why: "--reason",
  client: "--client",
  "effect.factor": "--factor",
  "effect.mode": "--mode",
  from: "--last",
  until: "--last",
};

/** Returns a fault with the name of the option that the operator has written. */
function faultLine(fault: BodyFault | null, body: object | undefined): string {
  const path = String(fault?.path ?? "");
  const message = String(fault?.message ?? "");
  const name = path === "known" ? knownOption(body) : (OPTIONS[path] ?? path);
  if (name === "") return message;
  // Most messages continue a sentence that begins with the name.
  return /^[a-z]/.test(message) ? `${name} ${message}` : `${name}: ${message}`;
}

function knownOption(body: object | undefined): string {
  const known = body && "known" in body ? Object.keys(body.known ?? {}) : [];
  const options = [
    known.includes("ip") && "--ip",
    known.some((name) => name !== "ip") && "--known",
  ];
  return options.filter(Boolean).join(" and ") || "--known";
}

function redirected({ response, place, token, atOption }: RawAnswer): AdminError {
  const location = response.headers.get("location") ?? "";
  const target = URL.canParse(location, place) ? new URL(location, place).origin : undefined;
  const where = target === undefined ? "" : ` to ${quoted(target, [token.value])}`;
  const login = /cloudflareaccess\.com$/.test(target ?? "")
    ? " Cloudflare Access protects this host: let its policy pass /_weir/api/ for a service token, or use the dashboard."
    : ` If Weir is there, name that URL with ${atOption}.`;
  return new AdminError(
    EXIT.unavailable,
    `${place} answered with a redirect (${response.status})${where}. The token was not sent there.${login}`,
  );
}

/** The minimum length of a token in characters. Weir ignores a shorter secret. */
const MIN_TOKEN = 32;

/** The admin surface answers a wrong token as if it did not exist, so the reason cannot be known. */
function notWeir({ response, text, place, token, atOption }: RawAnswer): string {
  const type = response.headers.get("content-type") ?? "";
  const kind =
    /html/i.test(type) || /^\s*<(?:!doctype|html)/i.test(text)
      ? "a page in HTML"
      : "another answer";
  if (token.value.length < MIN_TOKEN) {
    return `The token (${token.source}) has ${token.value.length} characters. Weir accepts only tokens of at least ${MIN_TOKEN}.`;
  }
  return [
    `${place} answered like any server without Weir's admin API (HTTP ${response.status}, ${kind}).`,
    `With a wrong token, Weir answers as if the API did not exist. Check in this order:`,
    `  1. The token (${token.source}) is the same text as the secret of this deployment.`,
    "  2. The secret is set and has at least 32 characters: npx wrangler secret list",
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

import { createHmac, randomInt, randomUUID } from "node:crypto";

/** One attempt to see or change what only operators may see or change. */
export interface AdminVector {
  readonly name: string;
  /** The first line of the request. */
  readonly line: string;
  /** The header fields, except Host, CF-Connecting-IP and Connection. One character for each byte. */
  readonly fields?: readonly string[];
  /** @default "api.example.com" */
  readonly host?: string;
  readonly body?: string;
  /**
   * The status of the answer to a request with a valid credential but without the right. If undefined, the answer must
   * be the same as for a path that does not exist.
   */
  readonly refused?: number;
}

export const TOKEN = "admin-token-of-the-evasion-tests-0123456789";
export const READ_TOKEN = "read-token-of-the-evasion-tests-9876543210";
export const OTHER_TOKEN = "other-token-of-the-evasion-tests-5555555555";
export const RULES_PATH = "/_weir/api/rules";

/** Returns a GET request of the rules with these header fields. */
export function get(name: string, ...fields: readonly string[]): AdminVector {
  return { name, line: `GET ${RULES_PATH} HTTP/1.1`, fields };
}

export function send(
  name: string,
  [method, path]: readonly [string, string],
  body: string,
  ...fields: readonly string[]
): AdminVector {
  const length = `Content-Length: ${Buffer.byteLength(body, "latin1")}`;
  return { name, line: `${method} ${path} HTTP/1.1`, fields: [...fields, length], body };
}

export const JSON_TYPE = "Content-Type: application/json";
export const FORM_TYPE = "Content-Type: application/x-www-form-urlencoded";
export const BEARER = `Authorization: Bearer ${TOKEN}`;
export const SAME_ORIGIN = ["Origin: http://api.example.com", "Sec-Fetch-Site: same-origin"];

/** The JSON of an override that nobody may set. */
export const OVERRIDE = JSON.stringify({
  rule: "all",
  effect: { mode: "off" },
  expiresIn: "1h",
  reason: "evasion",
});

const HOUR_MS = 3_600_000;
export const SESSION_MS = 12 * HOUR_MS;

/** Returns a cookie that a log-in with a token would have set. @param age milliseconds since the log-in */
export function sessionOf(token: string, role: "admin" | "read" = "admin", age = 0): string {
  const content = `${role}.${Date.now() - age + SESSION_MS}.${randomUUID()}`;
  return `__Secure-weir=${content}.${signed(`session\n${content}`, token)}`;
}

export function csrfOf(cookie: string, token: string): string {
  const content = cookie.slice(cookie.indexOf("=") + 1, cookie.lastIndexOf("."));
  return signed(`csrf\n${content}`, token);
}

function signed(text: string, token: string): string {
  return createHmac("sha256", `weir-session\n${token}`).update(text).digest("base64url");
}

/** Returns an address that no other request has, so that the limit of attempts does not hide a weakness. */
export function freshAddress(): string {
  return `2001:db8:${hex()}:${hex()}::1`;
}

function hex(): string {
  return randomInt(1, 0xffff).toString(16);
}

import {
  type AdminVector,
  csrfOf,
  FORM_TYPE,
  get,
  JSON_TYPE,
  OTHER_TOKEN,
  OVERRIDE,
  READ_TOKEN,
  SAME_ORIGIN,
  SESSION_MS,
  send,
  sessionOf,
  TOKEN,
} from "../vector.ts";

const valid = sessionOf(TOKEN);
const read = sessionOf(READ_TOKEN, "read");
const content = valid.slice(0, valid.lastIndexOf("."));
const signature = valid.slice(valid.lastIndexOf(".") + 1);
const later = valid.replace(/\.\d{13}\./, `.${Date.now() + 10 * SESSION_MS}.`);
const cookie = (...values: readonly string[]) => `Cookie: ${values.join("; ")}`;

const csrf = csrfOf(valid, TOKEN);
const token = `X-Weir-Csrf: ${csrf}`;
const CHANGE = ["PUT", "/_weir/api/overrides"] as const;

export const sessions = [
  get("an empty cookie", cookie("__Secure-weir=")),
  get("a cookie without a signature", cookie(content)),
  get("an empty signature", cookie(`${content}.`)),
  get("a part of the signature", cookie(valid.slice(0, -1))),
  get("a longer signature", cookie(`${valid}A`)),
  get("another signature", cookie(`${content}.${"A".repeat(43)}`)),
  get("the CSRF token as signature", cookie(`${content}.${csrfOf(valid, TOKEN)}`)),
  get("a session of another token", cookie(sessionOf(OTHER_TOKEN))),
  get("a session of an empty token", cookie(sessionOf(""))),
  get("a session of the word undefined", cookie(sessionOf("undefined"))),
  get("a session that has ended", cookie(sessionOf(TOKEN, "admin", SESSION_MS + 1))),
  get("a session with a later end", cookie(later)),
  get("a reading session with another role", cookie(read.replace("=read.", "=admin."))),
  get("a session of the reading token as admin", cookie(sessionOf(READ_TOKEN, "admin"))),
  get("an admin session as reading", cookie(valid.replace("=admin.", "=read."))),
  get("an unknown role", cookie(valid.replace("=admin.", "=root."))),
  get("another name", cookie(valid.replace("__Secure-weir", "weir"))),
  get("a name in lower case", cookie(valid.replace("__Secure-weir", "__secure-weir"))),
  get("a name with __Host-", cookie(valid.replace("__Secure-weir", "__Host-weir"))),
  get("quotes around the value", cookie(valid.replace(/=(.*)/, '="$1"'))),
  get("an escape in the value", cookie(valid.replaceAll(".", "%2e"))),
  get("a valid cookie after many forged ones", cookie(...Array(32).fill(later), valid)),
  get("the cookie in another field", `X-Cookie: ${valid}`, `Set-Cookie: ${valid}`),
  get("only the signature", cookie(`__Secure-weir=${signature}`)),
  get("a session that another site sends", cookie(valid), "Sec-Fetch-Site: cross-site"),
  ...["cross-site", "same-site"].map((site) =>
    send(
      `a change from a page of another site: ${site}`,
      CHANGE,
      OVERRIDE,
      JSON_TYPE,
      cookie(valid),
      token,
      ...SAME_ORIGIN.slice(0, 1),
      `Sec-Fetch-Site: ${site}`,
    ),
  ),
  get("the names of all objects", cookie("__Secure-weir=__proto__.9999999999999.constructor")),
];

const refused = (vector: AdminVector, status = 403): AdminVector => ({
  ...vector,
  refused: status,
});
const change = (name: string, ...fields: readonly string[]) =>
  refused(send(name, CHANGE, OVERRIDE, JSON_TYPE, cookie(valid), ...fields));
const form = (name: string, body: string, ...fields: readonly string[]) =>
  refused(send(name, ["POST", "/_weir/overrides"], body, cookie(valid), ...fields));
const fields = "rule=all&mode=off&expiresIn=1h&reason=evasion";

/** Requests with a valid session that a page of another site, or a session without the right, sends. */
export const forgeries = [
  change("no CSRF token", ...SAME_ORIGIN),
  change("an empty CSRF token", ...SAME_ORIGIN, "X-Weir-Csrf:"),
  change("another CSRF token", ...SAME_ORIGIN, `X-Weir-Csrf: ${csrf.slice(1)}A`),
  change(
    "the CSRF token of another session",
    ...SAME_ORIGIN,
    `X-Weir-Csrf: ${csrfOf(sessionOf(TOKEN), TOKEN)}`,
  ),
  change("the CSRF token twice", ...SAME_ORIGIN, token, token),
  change("the signature as CSRF token", ...SAME_ORIGIN, `X-Weir-Csrf: ${signature}`),
  change("a request without an origin", token),
  change("the origin null", token, "Origin: null"),
  change(
    "the origin null with the same site",
    token,
    "Origin: null",
    "Sec-Fetch-Site: same-origin",
  ),
  change("another origin", token, "Origin: https://evil.example"),
  change("an origin that begins alike", token, "Origin: http://api.example.com.evil.example"),
  change("an origin with another scheme", token, "Origin: https://api.example.com"),
  change("an origin with a port", token, "Origin: http://api.example.com:8080"),
  change("a typed address", token, "Sec-Fetch-Site: none"),
  form("a form without a CSRF token", fields, FORM_TYPE, ...SAME_ORIGIN),
  form("a form with another CSRF token", `${fields}&csrf=x`, FORM_TYPE, ...SAME_ORIGIN),
  form("a form with two CSRF tokens", `${fields}&csrf=${csrf}&csrf=x`, FORM_TYPE, ...SAME_ORIGIN),
  form(
    "a form of another site",
    `${fields}&csrf=${csrf}`,
    FORM_TYPE,
    "Origin: https://evil.example",
  ),
  form("a form as text", `${fields}&csrf=${csrf}`, "Content-Type: text/plain", ...SAME_ORIGIN),
  form("a form without a type", `${fields}&csrf=${csrf}`, ...SAME_ORIGIN),
  form(
    "a form in several parts",
    `--a\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n${csrf}\r\n--a--\r\n`,
    "Content-Type: multipart/form-data; boundary=a",
    ...SAME_ORIGIN,
  ),
  refused(
    send(
      "the CSRF token in the query",
      ["PUT", `/_weir/api/overrides?csrf=${csrf}`],
      OVERRIDE,
      JSON_TYPE,
      cookie(valid),
      ...SAME_ORIGIN,
    ),
  ),
  refused(
    send(
      "a log-out without a CSRF token",
      ["POST", "/_weir/logout"],
      "",
      FORM_TYPE,
      cookie(valid),
      ...SAME_ORIGIN,
    ),
  ),
  refused(
    send(
      "a reading session",
      CHANGE,
      OVERRIDE,
      JSON_TYPE,
      cookie(read),
      ...SAME_ORIGIN,
      `X-Weir-Csrf: ${csrfOf(read, READ_TOKEN)}`,
    ),
  ),
  refused(
    send(
      "a reading session and the CSRF token of an admin",
      CHANGE,
      OVERRIDE,
      JSON_TYPE,
      cookie(read),
      ...SAME_ORIGIN,
      token,
    ),
  ),
];

import { waitUntil } from "cloudflare:workers";
import { decode } from "hono/utils/jwt/jwt";
import {
  ACCESS_AUD,
  ACCESS_ROLE,
  ACCESS_TEAM,
  ADMIN_READ_TOKEN,
  ADMIN_TOKEN,
  type Env,
  MIN_ADMIN_TOKEN,
  textVar,
} from "../config/bindings.ts";
import type { Actor } from "../control/protocol.ts";
import { copyRequest } from "../http/forward.ts";
import { base64url, importHmacKey, isSameText } from "../request/identity.ts";
import { createClaimsReader } from "../request/token.ts";
import { type AdminOperations, OperationError } from "./operations.ts";

const encoder = new TextEncoder();

/** Returns the HMAC-SHA-256 of a text, as 43 characters of base64url. */
export async function sign(key: CryptoKey, text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text))));
}

/** Returns the SHA-256 of a text, as 43 characters of base64url. */
export async function sha256(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

/** The permissions of a credential: `admin` reads and changes, `read` only reads. */
export type Role = "admin" | "read";

/** An operator whose credential is valid. */
export interface Operator {
  /** The operator's name in the audit list: see `Actor`. */
  readonly actor: Actor;
  readonly role: Role;
  /**
   * The token that each change in a browser must send, in the form field `csrf` or in the header `X-Weir-Csrf`.
   * Empty for credentials that browsers never send by themselves, because changes then need no token.
   */
  readonly csrf: string;
}

/** A configured token, and its permissions. */
export interface AdminToken {
  readonly value: string;
  readonly role: Role;
}

/** The Cloudflare Access application whose users are operators. */
export interface AccessApplication {
  /** The URL of the team, `https://TEAM.cloudflareaccess.com`, which issues the tokens. */
  readonly team: string;
  /** The application's audience tag. */
  readonly audience: string;
  /** The permissions of all users of the application. */
  readonly role: Role;
}

/** The credentials that a Worker accepts. */
export interface Credentials {
  readonly tokens: readonly AdminToken[];
  readonly access?: AccessApplication;
}

/** Called with a fault of the credentials. The text contains no secret. */
export type OnFault = (fault: string) => void;

/**
 * Reads the credentials that the Worker's bindings configure. A faulty credential is not accepted.
 *
 * @returns undefined if there is no valid credential
 */
export function readCredentials(env: Env, onFault: OnFault): Credentials | undefined {
  const tokens = readTokens(env, onFault);
  const access = readAccess(env, onFault);
  if (tokens.length === 0 && !access) return undefined;
  return { tokens, ...(access && { access }) };
}

function readTokens(env: Env, onFault: OnFault): AdminToken[] {
  const admin = readToken(env, ADMIN_TOKEN, onFault);
  const read = readToken(env, ADMIN_READ_TOKEN, onFault);
  const tokens: AdminToken[] = [];
  if (admin !== undefined) tokens.push({ value: admin, role: "admin" });
  if (read === undefined) return tokens;
  if (read !== textVar(env, ADMIN_TOKEN)) return [...tokens, { value: read, role: "read" }];
  // Both tokens have the same text, so neither role is certain, and neither token is accepted.
  onFault(`${ADMIN_READ_TOKEN} is the same text as ${ADMIN_TOKEN}, so neither is accepted`);
  return [];
}

function readToken(env: Env, name: string, onFault: OnFault): string | undefined {
  const token = textVar(env, name);
  if (token === undefined) return undefined;
  if (token.length < MIN_ADMIN_TOKEN) {
    onFault(`${name} has fewer than ${MIN_ADMIN_TOKEN} characters`);
    return undefined;
  }
  // The header Authorization can contain no other character.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  onFault(`${name} has characters other than letters, digits and punctuation of ASCII`);
  return undefined;
}

function readAccess(env: Env, onFault: OnFault): AccessApplication | undefined {
  const team = textVar(env, ACCESS_TEAM)?.replace(/\/$/, "");
  const audience = textVar(env, ACCESS_AUD);
  const role = textVar(env, ACCESS_ROLE) ?? "admin";
  if (team === undefined && audience === undefined) return undefined;
  if (team === undefined || audience === undefined) {
    const [set, missing] =
      team === undefined ? [ACCESS_AUD, ACCESS_TEAM] : [ACCESS_TEAM, ACCESS_AUD];
    onFault(`${missing} is not set although ${set} is, so no user of Access is accepted`);
  } else if (!/^https:\/\/[a-z0-9-]+\.cloudflareaccess\.com$/.test(team)) {
    onFault(`${ACCESS_TEAM} is not https://TEAM.cloudflareaccess.com`);
  } else if (!/^[0-9a-f]{64}$/.test(audience)) {
    onFault(
      `${ACCESS_AUD} is not the audience tag of an application: 64 characters of 0-9 and a-f`,
    );
  } else if (role !== "admin" && role !== "read") {
    onFault(`${ACCESS_ROLE} is not admin or read, so no user of Access is accepted`);
  } else {
    return { team, audience, role };
  }
  return undefined;
}

// Sessions of browsers. A session is a signed cookie, and nothing is stored. A new token ends all sessions of the
// old token, because each token signs only the sessions that it began.

export const COOKIE = "__Secure-weir";
const ATTRIBUTES = "Path=/_weir; HttpOnly; Secure; SameSite=Strict";
/** The length of a session, in seconds. */
const SESSION_S = 12 * 3600;
/**
 * The maximum number of cookies of this name whose signatures are checked. Another host of the same domain can add
 * cookies of this name, so the first cookies may be wrong.
 */
const MAX_COOKIES = 32;

/** The session of a browser. `csrf` is the token that each change of this session must send. */
type Session = Pick<Operator, "role" | "csrf">;

/** The value of Set-Cookie that ends a session. */
export const END_OF_SESSION = `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;

/** Creates the functions that begin and read the sessions of a Worker. */
export function createSessions(tokens: readonly AdminToken[]) {
  const keys = new Map<string, CryptoKey>();

  // Stores the key instead of its promise, because a request must not wait for another request's promise.
  async function signWith(token: AdminToken, text: string): Promise<string> {
    let key = keys.get(token.value);
    if (!key) {
      key = await importHmacKey(`weir-session\n${token.value}`);
      keys.set(token.value, key);
    }
    return sign(key, text);
  }

  async function readOne(value: string, now: number): Promise<Session | undefined> {
    const [, content = "", role, expiresAt, signature = ""] = PATTERN.exec(value) ?? [];
    const token = tokens.find((each) => each.role === role);
    if (!token || now >= Number(expiresAt)) return undefined;
    const expected = await signWith(token, `session\n${content}`);
    if (!(await isSameText(signature, expected))) return undefined;
    return { role: token.role, csrf: await signWith(token, `csrf\n${content}`) };
  }

  return {
    /** Returns the value of Set-Cookie that begins a session of the token's owner. */
    async begin(token: AdminToken, now: number): Promise<string> {
      const content = `${token.role}.${now + SESSION_S * 1000}.${crypto.randomUUID()}`;
      const signature = await signWith(token, `session\n${content}`);
      return `${COOKIE}=${content}.${signature}; ${ATTRIBUTES}; Max-Age=${SESSION_S}`;
    },

    /**
     * Returns the session of a request.
     *
     * @param cookies the header Cookie
     * @returns undefined if there is no session, if the session has ended, or if its signature is wrong
     */
    async read(cookies: string | null, now: number): Promise<Session | undefined> {
      for (const value of cookiesOf(cookies)) {
        const session = await readOne(value, now);
        if (session) return session;
      }
      return undefined;
    },
  };
}

/** Role, end, random id and signature of a session. */
const PATTERN = /^((admin|read)\.([0-9]{13})\.[0-9a-f-]{36})\.([\w-]{43})$/;

/**
 * Splits the header Cookie. If a request has several such headers, workerd joins them by commas, and Cloudflare by
 * semicolons. A comma without a name after it is part of a value.
 */
export function splitCookies(cookies: string): string[] {
  return cookies.split(/;|,(?=\s*[\w!#$%&'*+.^`|~-]+\s*=)/);
}

function cookiesOf(cookies: string | null): string[] {
  if (!cookies?.includes(COOKIE)) return [];
  return splitCookies(cookies)
    .map((each) => each.trim())
    .filter((each) => each.startsWith(`${COOKIE}=`))
    .map((each) => each.slice(COOKIE.length + 1))
    .filter((value) => PATTERN.test(value))
    .slice(0, MAX_COOKIES);
}

/** The header in which Cloudflare Access sends the token of a signed-in user. */
export const HEADER = "cf-access-jwt-assertion";
/** The only algorithm with which Access signs. */
const ALG = "RS256";
/** The maximum time that a request waits for the team's keys, in milliseconds. */
const MAX_KEYS_WAIT_MS = 2000;
/** The maximum length of a name in the audit list: the maximum length of an email address. */
const MAX_NAME = 254;

/** @returns undefined if the request has no valid token */
export type AccessReader = (headers: Headers) => Promise<Operator | undefined>;

/**
 * Creates a function that verifies the tokens of Access with the team's keys.
 * https://developers.cloudflare.com/cloudflare-one/identity/authorization-cookie/validating-json/
 */
export function createAccessReader({ team, audience, role }: AccessApplication): AccessReader {
  const jwt = {
    kind: "jwks",
    url: `${team}/cdn-cgi/access/certs`,
    algs: [ALG],
    header: HEADER,
    issuer: team,
    audience,
  } as const;
  // The reader waits for half of this time.
  const readClaims = createClaimsReader(jwt, new Map(), 2 * MAX_KEYS_WAIT_MS, waitUntil);
  return async function readUser(headers) {
    const token = headers.get(HEADER);
    if (!token) return undefined;
    // Anyone can send a token, so only a token that may be valid causes a fetch of the keys.
    if (!mayBeValid(token, team, audience)) return undefined;
    const claims = await readClaims(headers);
    const { email, common_name: program } = claims ?? {};
    const name = email || program;
    if (typeof name !== "string" || !/^[\x21-\x7e]+$/.test(name) || name.length > MAX_NAME) {
      return undefined;
    }
    // Pages of other sites cannot read the token, so its digest proves that a page of Weir sent a change. A program
    // with a service token has no browser and no email address.
    const csrf = email ? await sha256(`csrf\n${token}`) : "";
    return { actor: `access:${name}`, role, csrf };
  };
}

/** Whether a token has the algorithm, issuer, audience and time of a valid token. */
function mayBeValid(token: string, team: string, audience: string): boolean {
  try {
    const { header, payload } = decode(token);
    return (
      header.alg === ALG &&
      payload.iss === team &&
      [payload.aud].flat().includes(audience) &&
      typeof payload.exp === "number" &&
      payload.exp * 1000 > Date.now()
    );
  } catch {
    return false;
  }
}

/** Returns the operations of an operator with the role `read`. All changes are refused. */
export function readOnly(operations: AdminOperations): AdminOperations {
  const refuse = async () => {
    throw new OperationError(
      "forbidden",
      "This credential may only read. Use WEIR_ADMIN_TOKEN, or a user of Access without WEIR_ACCESS_ROLE=read.",
    );
  };
  return {
    rules: () => operations.rules(),
    statistics: (query) => operations.statistics(query),
    totals: () => operations.totals(),
    denials: (query, selector) => operations.denials(query, selector),
    identify: (selector, rule) => operations.identify(selector, rule),
    peek: (selector, rule) => operations.peek(selector, rule),
    reset: refuse,
    liftBan: refuse,
    overrides: () => operations.overrides(),
    setOverride: refuse,
    removeOverride: refuse,
    audit: (limit, before) => operations.audit(limit, before),
    explain: (request) => operations.explain(request),
  };
}

/** The cookie of Access. It has the same token as the header. */
const ACCESS_COOKIE = "CF_Authorization";

/**
 * Matches a header Authorization with a bearer token. workerd joins several headers by commas, and an operator may
 * have forgotten the blank.
 */
const BEARER = /(?:^|,)\s*bearer/i;

/** Whether a request has a header in which Weir looks for credentials. */
export function mayHaveCredential(headers: Headers): boolean {
  return ["authorization", "cookie", HEADER].some((name) => headers.has(name));
}

/**
 * Returns a request without credentials of Weir. The request continues, and the origin must not get them. The result
 * does not depend on whether a token is right, because the origin's response could show this.
 *
 * @param hasTokens whether Weir has tokens, so that a bearer token or a session may be meant for Weir
 * @param hasAccessToken whether the request has a valid token of Access. An invalid token may be for another application
 * @returns the same object if it has no such credential; otherwise a copy, which has taken over the body
 */
export function withoutCredentials(
  request: Request,
  hasTokens: boolean,
  hasAccessToken: boolean,
): Request {
  const { headers } = request;
  const cookies = headers.get("cookie");
  const dropped = [...(hasTokens ? [COOKIE] : []), ...(hasAccessToken ? [ACCESS_COOKIE] : [])];
  const kept = cookies && withoutCookies(cookies, dropped);
  const hasBearer = hasTokens && BEARER.test(headers.get("authorization") ?? "");
  const dropsAccess = hasAccessToken && headers.has(HEADER);
  if (kept === cookies && !hasBearer && !dropsAccess) return request;
  const copy = copyRequest(request);
  if (hasBearer) copy.headers.delete("authorization");
  if (dropsAccess) copy.headers.delete(HEADER);
  if (kept === "") copy.headers.delete("cookie");
  else if (kept !== null && kept !== cookies) copy.headers.set("cookie", kept);
  return copy;
}

/** Ignores the case of a cookie's name and blanks after it, as some servers do. */
function withoutCookies(cookies: string, names: readonly string[]): string {
  const all = splitCookies(cookies);
  const dropped = names.map((name) => name.toLowerCase());
  const nameOf = (each: string) => each.split("=", 1)[0]?.trim().toLowerCase() ?? "";
  const kept = all.filter((each) => !dropped.includes(nameOf(each)));
  return kept.length === all.length ? cookies : kept.join(";").trim();
}

/**
 * Whether a page of Weir sent a request. Browsers send at least one of the two headers with each request other than
 * GET and HEAD, and pages cannot change these headers.
 *
 * @returns undefined if the sender is not a browser
 */
export function isSameOrigin(request: Request): boolean | undefined {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  if (site === null && origin === null) return undefined;
  if (site !== null && site !== "same-origin") return false;
  return origin === null || origin === URL.parse(request.url)?.origin;
}

/**
 * Whether a browser says that a page of another site has sent a request. `same-site` means another host of the same
 * domain, which can belong to a different owner.
 */
export function isOfOtherSite(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  return site === "cross-site" || site === "same-site";
}

/** Whether a browser opens a page. The page with the link cannot read the opened page. */
export function isNavigation({ method, headers }: Request): boolean {
  return method === "GET" && headers.get("sec-fetch-dest") === "document";
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** The headers of all responses below `/_weir/`. */
const FIELDS = {
  "Content-Security-Policy": POLICY,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  // Browsers send the header Origin with forms only if the policy allows at least `same-origin`.
  "Referrer-Policy": "same-origin",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/**
 * Adds the headers that keep caches and other sites away from a response. The Cache-Control of an asset stays.
 */
export function withSecurityFields(response: Response): Response {
  const secured = new Response(response.body, response);
  for (const [name, value] of Object.entries(FIELDS)) secured.headers.set(name, value);
  if (!secured.headers.has("Cache-Control")) secured.headers.set("Cache-Control", "no-store");
  return secured;
}

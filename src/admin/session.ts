import type { AdminToken } from "./credentials.ts";
import { importHmacKey, isSameText, sign } from "./digest.ts";
import type { Role } from "./operator.ts";

// Sessions of browsers. A session is a signed cookie, and nothing is stored. A token signs its own
// sessions, so a new token ends all sessions of the old one.

export const COOKIE = "__Secure-weir";
const ATTRIBUTES = "Path=/_weir; HttpOnly; Secure; SameSite=Strict";
/** How long a session lasts, in seconds. */
const SESSION_S = 12 * 3600;
/**
 * The maximum number of cookies of this name whose signatures are checked. Another host of the same domain can
 * add cookies of the same name, so the first ones may be wrong.
 */
const MAX_COOKIES = 32;

/** The session of a browser. */
export interface Session {
  readonly role: Role;
  /** The token that each change of this session must send. */
  readonly csrf: string;
}

/** Creates and reads the cookies of sessions. */
export interface Sessions {
  /** Returns the value of Set-Cookie that begins a session of the token's owner. */
  begin(token: AdminToken, now: number): Promise<string>;
  /**
   * Returns the session of a request.
   *
   * @param cookies the header Cookie
   * @returns undefined if there is none, if it has ended, or if its signature is wrong
   */
  read(cookies: string | null, now: number): Promise<Session | undefined>;
}

/** The value of Set-Cookie that ends a session. */
export const END_OF_SESSION = `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;

/** Creates the sessions of a Worker. */
export function createSessions(tokens: readonly AdminToken[]): Sessions {
  const keys = new Map<string, CryptoKey>();

  // The key is stored and not its promise, because a request must not wait for a promise of another.
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
    async begin(token, now) {
      const content = `${token.role}.${now + SESSION_S * 1000}.${crypto.randomUUID()}`;
      const signature = await signWith(token, `session\n${content}`);
      return `${COOKIE}=${content}.${signature}; ${ATTRIBUTES}; Max-Age=${SESSION_S}`;
    },

    async read(cookies, now) {
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
 * Splits the header Cookie. If a request has several such fields, workerd joins them by commas, and Cloudflare does
 * so by semicolons. A comma that no name follows is part of a value.
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

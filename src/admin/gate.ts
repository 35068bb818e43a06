import {
  type AdminToken,
  type Credentials,
  createAccessReader,
  createSessions,
  isNavigation,
  isOfOtherSite,
  isSameText,
  type Operator,
  type Sessions,
} from "./login.ts";
import type { Attempts } from "./login-throttle.ts";

/** The result of a log-in. */
export type LogIn =
  | { readonly kind: "wrong" | "locked" }
  | { readonly kind: "ok"; readonly operator: Operator; readonly cookie: string };

/** The gate in front of everything below `/_weir/`. */
export interface Gate {
  /** Whether operators can log in with a token. */
  readonly hasLogIn: boolean;
  /**
   * Returns the operator whose valid credential a request has. Counts a wrong token as a failed attempt,
   * but no signed credential, because nobody can guess a signature: it is an old one.
   *
   * @returns `"refused"` if the credential is valid, but a page of another site has sent it, or the address
   * has failed too often; undefined if the request has no valid credential
   */
  operatorOf(request: Request): Promise<Operator | "refused" | undefined>;
  /** Begins a session if the token is right and the address has not failed too often. */
  logIn(headers: Headers, token: string): Promise<LogIn>;
}

export function createGate({ tokens, access }: Credentials, attempts: Attempts): Gate {
  const sessions: Sessions = createSessions(tokens);
  const readAccess = access && createAccessReader(access);

  async function tokenLike(sent: string): Promise<AdminToken | undefined> {
    let found: AdminToken | undefined;
    // All tokens are compared, so that the time does not depend on which of them is right.
    for (const token of tokens) if (await isSameText(sent, token.value)) found = token;
    return found;
  }

  async function readBearer(headers: Headers): Promise<Operator | "invalid" | undefined> {
    const field = headers.get("authorization");
    // A different scheme may be the site's own, such as the password of a test environment.
    if (tokens.length === 0 || !field || !/^bearer\b/i.test(field)) return undefined;
    const token = field.startsWith("Bearer ") ? await tokenLike(field.slice(7)) : undefined;
    return token ? { actor: "token", role: token.role, csrf: "" } : "invalid";
  }

  async function readSession(headers: Headers): Promise<Operator | undefined> {
    const session = await sessions.read(headers.get("cookie"), Date.now());
    return session && { actor: "token", ...session };
  }

  return {
    hasLogIn: tokens.length > 0,

    async operatorOf(request) {
      const { headers } = request;
      const isForeign = isOfOtherSite(headers);
      const bearer = await readBearer(headers);
      const operator = typeof bearer === "object" ? bearer : await readSession(headers);
      if (operator) return isForeign || (await attempts.isLocked(headers)) ? "refused" : operator;
      // Any site can let an operator's browser send wrong tokens.
      if (bearer === "invalid" && !isForeign) attempts.fail(headers);
      const user = await readAccess?.(headers);
      if (!user) return undefined;
      // The log-in page of Access is on another site, and leads the browser to a page of Weir.
      const isRefused = isForeign && !isNavigation(request);
      return isRefused || (await attempts.isLocked(headers)) ? "refused" : user;
    },

    async logIn(headers, sent) {
      const token = await tokenLike(sent);
      const failed = token ? undefined : attempts.fail(headers);
      if (await attempts.isLocked(headers, failed)) return { kind: "locked" };
      if (!token) return { kind: "wrong" };
      const operator = { actor: "token", role: token.role, csrf: "" };
      return { kind: "ok", operator, cookie: await sessions.begin(token, Date.now()) };
    },
  };
}

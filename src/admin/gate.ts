import { createAccessReader } from "./access-token.ts";
import type { Attempts } from "./attempts.ts";
import type { AdminToken, Credentials } from "./credentials.ts";
import { isSameText } from "./digest.ts";
import type { Operator } from "./operator.ts";
import { createSessions, type Sessions } from "./session.ts";

/** The result of a log-in. */
export type LogIn =
  | { readonly kind: "wrong" | "locked" }
  | { readonly kind: "ok"; readonly operator: Operator; readonly cookie: string };

/** The gate in front of everything below `/_weir/`. */
export interface Gate {
  /** Whether operators can log in with a token. */
  readonly hasLogIn: boolean;
  /**
   * Returns the operator whose valid credential a request has. Counts an invalid credential as a failed
   * attempt.
   *
   * @returns undefined if the request has none, or if its address has failed too often
   */
  operatorOf(request: Request): Promise<Operator | undefined>;
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
    if (!field || !/^bearer\b/i.test(field)) return undefined;
    const token = field.startsWith("Bearer ") ? await tokenLike(field.slice(7)) : undefined;
    return token ? { actor: "token", role: token.role, csrf: "" } : "invalid";
  }

  async function readSession(headers: Headers): Promise<Operator | "invalid" | undefined> {
    const session = await sessions.read(headers.get("cookie"), Date.now());
    return typeof session === "object" ? { actor: "token", ...session } : session;
  }

  return {
    hasLogIn: tokens.length > 0,

    async operatorOf({ headers }) {
      let hasFailed = false;
      for (const read of [readBearer, readSession, readAccess]) {
        const operator = await read?.(headers);
        if (typeof operator === "object") {
          return (await attempts.isLocked(headers)) ? undefined : operator;
        }
        hasFailed ||= operator === "invalid";
      }
      if (hasFailed) attempts.fail(headers);
      return undefined;
    },

    async logIn(headers, sent) {
      const token = await tokenLike(sent);
      if (!token) attempts.fail(headers);
      if (await attempts.isLocked(headers)) return { kind: "locked" };
      if (!token) return { kind: "wrong" };
      const operator = { actor: "token", role: token.role, csrf: "" };
      return { kind: "ok", operator, cookie: await sessions.begin(token, Date.now()) };
    },
  };
}

import { waitUntil } from "cloudflare:workers";
import * as v from "valibot";
import { type Rule, RuleSchema } from "../config/rule.ts";
import type { Decision } from "../limiter/decision.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { clientAddress } from "../request/headers.ts";
import { hashValues, isSameText } from "../request/identity.ts";
import { LruCache } from "../request/lru-cache.ts";
import { withTimeout } from "../request/timeout.ts";
import {
  type AdminToken,
  type Credentials,
  createAccessReader,
  createSessions,
  isNavigation,
  isOfOtherSite,
  type Operator,
} from "./login.ts";

/** The number of failed attempts of one address in a minute after which no credential is accepted. */
const MAX_FAILED = 5;
const WINDOW_MS = 60_000;
/** The prefix length of an IPv6 network that counts as one client. A client has at least one such network. */
const IPV6_PREFIX = 64;
/**
 * The maximum time that an operator waits for the store, in milliseconds. This isolate's memory decides afterwards.
 */
const MAX_WAIT_MS = 250;
/**
 * The maximum number of failed attempts in a minute for which an isolate calls the store, over all addresses. A
 * client can have any number of IPv6 networks, so a limit for each address does not bound these calls.
 */
const MAX_CALLS = 10;
/** The maximum number of addresses that an isolate remembers. */
const MAX_ADDRESSES = 2048;

/** The store that counts failed attempts for all isolates. */
interface AttemptStore {
  readonly limiter: Limiter;
  /** The secret with which addresses are hashed; undefined if it is not set. */
  readonly keySecret: string | undefined;
}

/** Limits the attempts to guess a credential. */
interface Attempts {
  /**
   * Counts a failed attempt in the background. The request need not wait for the promise.
   *
   * @returns the store's decision about the attempt; undefined if the store was not asked. Never rejects
   */
  fail(headers: Headers): Promise<Decision | undefined>;
  /**
   * Whether the address has failed so often that none of its credentials is accepted. If the store cannot be read, or
   * if this isolate has called it too often, the attempts in this isolate decide.
   *
   * @param failed the result of `fail`, if the credential is wrong. A locked client gets the same answer for a wrong
   * and for a right credential, so that it cannot find out which one is right
   */
  isLocked(headers: Headers, failed?: Promise<Decision | undefined>): Promise<boolean>;
}

/**
 * Creates the limit of attempts. Weir's own store counts the attempts for all isolates. This isolate also counts, so
 * that the limit holds at once in a burst, and while the store fails.
 *
 * @param getStore called at the first attempt, because most isolates see no attempt
 */
export function createAttempts(getStore: () => AttemptStore): Attempts {
  const failures = new LruCache<{ readonly window: number; readonly count: number }>(MAX_ADDRESSES);
  const rule = attemptRule();
  let calls = { window: 0, count: 0 };

  function countedHere(address: string, window: number): number {
    const counted = failures.get(address);
    return counted?.window === window ? counted.count : 0;
  }

  function callsIn(window: number): number {
    return calls.window === window ? calls.count : 0;
  }

  async function countAttempt(address: string, checkOnly: boolean) {
    const { limiter, keySecret } = getStore();
    const identity = await hashValues([{ name: "ip", value: address }], keySecret);
    return limiter.decide([{ rule, windows: rule.windows, identity }], { cost: 1, checkOnly });
  }

  return {
    fail(headers) {
      const address = clientAddress(headers, IPV6_PREFIX);
      const window = currentWindow();
      const before = countedHere(address, window);
      failures.set(address, { window, count: before + 1 });
      // Many attempts must not cause many calls to the store.
      const count = callsIn(window) + 1;
      if (before >= MAX_FAILED || count > MAX_CALLS) return Promise.resolve(undefined);
      calls = { window, count };
      const decision = countAttempt(address, false).catch(() => undefined);
      waitUntil(decision);
      return decision;
    },

    async isLocked(headers, failed) {
      const address = clientAddress(headers, IPV6_PREFIX);
      const window = currentWindow();
      if (countedHere(address, window) >= MAX_FAILED) return true;
      if (!failed && callsIn(window) >= MAX_CALLS) return false;
      return (await withinTime(failed ?? countAttempt(address, true)))?.outcome === "limited";
    },
  };
}

/** Returns the result of a task; undefined if it fails or takes too long. */
function withinTime<Result>(task: Promise<Result>): Promise<Result | undefined> {
  return withTimeout(task, MAX_WAIT_MS, () => undefined).catch(() => undefined);
}

function currentWindow(): number {
  return Math.floor(Date.now() / WINDOW_MS);
}

/** Returns the rule that counts attempts. No configuration can have a rule with its name. */
function attemptRule(): Rule {
  const rule = v.parse(RuleSchema, {
    name: "attempts",
    limit: MAX_FAILED,
    window: "1m",
    lease: false,
  });
  return { ...rule, name: "admin.attempts" };
}

/** The result of a log-in. */
export type LogIn =
  | { readonly kind: "wrong" | "locked" }
  | { readonly kind: "ok"; readonly operator: Operator; readonly cookie: string };

/** The gate in front of all paths below `/_weir/`. */
export interface Gate {
  /** Whether operators can log in with a token. */
  readonly hasLogIn: boolean;
  /**
   * Returns the operator with the valid credential of a request. Counts a wrong token as a failed attempt. Does not
   * count a wrong signed credential: nobody can guess a signature, so it is an old one.
   *
   * @returns `"refused"` if the credential is valid, but a page of another site has sent it, or the address has
   * failed too often; undefined if the request has no valid credential
   */
  operatorOf(request: Request): Promise<Operator | "refused" | undefined>;
  /** Begins a session if the token is right and the address has not failed too often. */
  logIn(headers: Headers, token: string): Promise<LogIn>;
}

export function createGate({ tokens, access }: Credentials, attempts: Attempts): Gate {
  const sessions = createSessions(tokens);
  const readAccess = access && createAccessReader(access);

  async function tokenLike(sent: string): Promise<AdminToken | undefined> {
    let found: AdminToken | undefined;
    // All tokens are compared, so that the time does not show which of them is right.
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

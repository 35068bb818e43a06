import { waitUntil } from "cloudflare:workers";
import * as v from "valibot";
import { type Rule, RuleSchema } from "../config/rule.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { clientAddress } from "../request/client-address.ts";
import { hashValues } from "../request/identity.ts";
import { LruCache } from "../request/lru-cache.ts";

/** The number of failed attempts of one address in a minute, after which no credential is accepted. */
const MAX_FAILED = 5;
const WINDOW_MS = 60_000;
/** The length of the networks of IPv6 that count as one client. A client has at least one such network. */
const IPV6_PREFIX = 64;
/** How long an operator waits for the store, in milliseconds. After it, this isolate's memory decides. */
const MAX_WAIT_MS = 250;
/** The maximum number of addresses that an isolate remembers. */
const MAX_ADDRESSES = 2048;

/** The store that counts failed attempts for all isolates. */
export interface AttemptStore {
  readonly limiter: Limiter;
  /** The secret with which addresses are hashed; undefined if it is not set. */
  readonly keySecret: string | undefined;
}

/** Limits the attempts to guess a credential. */
export interface Attempts {
  /** Counts a failed attempt in the background. The request does not wait for it. */
  fail(headers: Headers): void;
  /**
   * Whether the address has failed so often that no credential of it is accepted. If the store cannot
   * be read, the attempts in this isolate decide.
   */
  isLocked(headers: Headers): Promise<boolean>;
}

/**
 * Creates the limit of attempts. Weir's own store counts them for all isolates. This isolate counts too,
 * so that the limit holds at once in a burst, and if the store fails.
 *
 * @param getStore called at the first attempt, because most isolates see none
 */
export function createAttempts(getStore: () => AttemptStore): Attempts {
  const failures = new LruCache<{ readonly window: number; readonly count: number }>(MAX_ADDRESSES);
  const rule = attemptRule();

  function countedHere(address: string, window: number): number {
    const counted = failures.get(address);
    return counted?.window === window ? counted.count : 0;
  }

  async function decide(address: string, checkOnly: boolean) {
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
      // A flood of attempts must not become a flood of calls to the store. The address is locked already.
      if (before < MAX_FAILED) waitUntil(decide(address, false).catch(() => {}));
    },

    async isLocked(headers) {
      const address = clientAddress(headers, IPV6_PREFIX);
      if (countedHere(address, currentWindow()) >= MAX_FAILED) return true;
      return (await withinTime(decide(address, true)))?.outcome === "limited";
    },
  };
}

/** Returns the result of a task; undefined if it fails or takes too long. */
async function withinTime<Result>(task: Promise<Result>): Promise<Result | undefined> {
  const { promise: timeOver, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, MAX_WAIT_MS);
  try {
    return await Promise.race([task, timeOver]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function currentWindow(): number {
  return Math.floor(Date.now() / WINDOW_MS);
}

/** Returns the rule of the attempts. No configuration can have a rule of this name. */
function attemptRule(): Rule {
  const rule = v.parse(RuleSchema, {
    name: "attempts",
    limit: MAX_FAILED,
    window: "1m",
    lease: false,
  });
  return { ...rule, name: "admin.attempts" };
}

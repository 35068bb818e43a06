import { describe } from "vitest";
import {
  type ConfigInput,
  type CustomKeys,
  defineConfig,
  type RuleInput,
} from "../../src/config/index.ts";
import type { DecideOptions } from "../../src/limiter/counters.ts";
import type { Decision, Quota } from "../../src/limiter/decision.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import type { Store } from "../../src/stores/store.ts";
import { EVERY_STORE, TIMEOUT_MS, withClock } from "../suite/every-store.ts";
import { identifying, type Sent } from "../workerd/request/requests.ts";

export const MINUTE = 60;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/**
 * A midnight UTC at least a day ahead, in milliseconds. It is in the future because Durable Objects
 * remove rows that have expired.
 */
export const MIDNIGHT = (Math.ceil(Date.now() / (DAY * 1000)) + 1) * DAY * 1000;

/** The client and the target of a request. By default, one address requests `/search`. */
export interface From {
  readonly user?: string;
  readonly path?: string;
  readonly headers?: Sent;
}

/** A limiter with its rules, an empty store, and a clock that each request sets. */
export interface System {
  /** Decides a request that arrives `seconds` after midnight UTC, by the rules that match it. */
  decide(seconds: number, from?: From, options?: DecideOptions): Promise<Decision>;
  /** Sends `attempts` requests, one after the other. @returns the number that is admitted */
  admitted(
    seconds: number,
    attempts: number,
    from?: From,
    options?: DecideOptions,
  ): Promise<number>;
  /**
   * Sends a request with this cost.
   *
   * @returns the quota that each policy then has left, or "denied"
   */
  take(
    seconds: number,
    cost: number,
    from?: From,
    options?: DecideOptions,
  ): Promise<number[] | "denied">;
  /** @returns the quota left of each policy */
  left(seconds: number, from?: From): Promise<number[] | "denied">;
}

type Options = Omit<ConfigInput, "rules">;
type Open = (rules: readonly RuleInput[], options?: Options) => System;

/** The function for the key `custom:user`, which reads a header field. */
export const CUSTOM_KEYS: CustomKeys = { user: (request) => request.headers.get("x-user") };

/**
 * Runs tests on all three stores.
 *
 * @param tests defines the tests. It gets a function that creates a system with the given rules.
 * Each system has its own prefix in the store
 */
export function onEveryStore(name: string, tests: (open: Open) => void): void {
  describe.each(Object.keys(EVERY_STORE))(`${name}, on %s`, (store) => {
    tests((rules, options = {}) => openOn(store, rules, options));
  });
}

function openOn(name: string, rules: readonly RuleInput[], options: Options): System {
  const prefix = crypto.randomUUID();
  const config = defineConfig({
    ...options,
    prefix,
    timeoutMs: TIMEOUT_MS,
    rules,
    custom: { keys: CUSTOM_KEYS },
  });
  const subjectsOf = identifying(rules, options, { keys: CUSTOM_KEYS });
  let now = MIDNIGHT;
  const store = EVERY_STORE[name]?.(prefix) as Store;
  const limiter = new Limiter(
    config,
    withClock(store, () => now),
  );

  async function decide(
    seconds: number,
    from: From = {},
    options?: DecideOptions,
  ): Promise<Decision> {
    const { user, path = "/search", headers } = from;
    const sent = { ...(user && { "x-user": user }), ...headers };
    const subjects = await subjectsOf(sent, `https://api.example.com${path}`);
    now = MIDNIGHT + seconds * 1000;
    const decision = await limiter.decide(subjects, options);
    if (decision.outcome === "undecided") throw new Error(`undecided: ${decision.detail}`);
    return decision;
  }

  async function take(seconds: number, cost: number, from?: From, options?: DecideOptions) {
    const decision = await decide(seconds, from, { ...options, cost });
    return decision.outcome === "allowed"
      ? decision.quotas.map(({ remaining }) => remaining)
      : "denied";
  }

  return {
    decide,
    take,
    left: (seconds, from) => take(seconds, 0, from),
    async admitted(seconds, attempts, from, options) {
      let count = 0;
      for (let attempt = 0; attempt < attempts; attempt++) {
        if ((await decide(seconds, from, options)).outcome === "allowed") count++;
      }
      return count;
    },
  };
}

/** Returns the quota of a decision's only policy. */
export function figuresOf(decision: Decision): Quota {
  if (decision.outcome === "undecided") throw new Error("undecided");
  return decision.quotas[0] as Quota;
}

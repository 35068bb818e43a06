import { env } from "cloudflare:workers";
import { describe, inject } from "vitest";
import { type ConfigInput, defineConfig } from "../../src/config/index.ts";
import type { DecideOptions } from "../../src/limiter/counters.ts";
import type { Decision, Quota } from "../../src/limiter/decision.ts";
import { Limiter } from "../../src/limiter/limiter.ts";
import type { CustomKeys } from "../../src/request/custom-key.ts";
import { createDurableObjectStore } from "../../src/stores/durable-object/durable-object-store.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import type { Store } from "../../src/stores/store.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";
import { identifying, type Sent } from "../workerd/request/requests.ts";

export const MINUTE = 60;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A midnight UTC to come, in milliseconds, a day off at least: what is past, objects clear away. */
export const MIDNIGHT = (Math.ceil(Date.now() / (DAY * 1000)) + 1) * DAY * 1000;

/** Who sends a request, and where to. By default to `/search`, from one address. */
export interface From {
  readonly user?: string;
  readonly path?: string;
  readonly headers?: Sent;
}

/** Rules on a store, with nothing counted yet, and a clock that each request sets. */
export interface System {
  /** Decides a request that comes `seconds` after midnight UTC, by the rules it falls under. */
  decide(seconds: number, from?: From, ask?: DecideOptions): Promise<Decision>;
  /** How many of `attempts` requests, one after the other, are admitted. */
  admitted(seconds: number, attempts: number, from?: From, ask?: DecideOptions): Promise<number>;
  /** Takes quota at once; what is left then of each policy, or "denied". */
  take(
    seconds: number,
    cost: number,
    from?: From,
    ask?: DecideOptions,
  ): Promise<number[] | "denied">;
  /** What is left of each policy. */
  left(seconds: number, from?: From): Promise<number[] | "denied">;
}

type Options = Omit<ConfigInput, "rules">;
type Open = (rules: ConfigInput["rules"], options?: Options) => System;

const timeoutMs = 10_000;

const stores: Record<string, (prefix: string) => Store> = {
  memory: () => createMemoryStore(),
  "Durable Objects": (prefix) =>
    createDurableObjectStore({ namespace: env.COUNTERS, prefix, timeoutMs }),
  Redis: () => {
    const { restUrl: url, restToken: token } = inject("redis");
    return createUpstashStore({ url, token, clock: "edge", timeoutMs });
  },
};

/** The key `custom:user`. */
const keys: CustomKeys = { user: (request) => request.headers.get("x-user") };

/**
 * Runs tests on all three stores.
 *
 * @param tests given a function that opens rules on the store, apart from whatever else is on it
 */
export function onEveryStore(name: string, tests: (open: Open) => void): void {
  describe.each(Object.keys(stores))(`${name}, on %s`, (store) => {
    tests((rules, options = {}) => openOn(store, rules, options));
  });
}

function openOn(name: string, rules: ConfigInput["rules"], options: Options): System {
  const prefix = crypto.randomUUID();
  const config = defineConfig({ ...options, prefix, timeoutMs, rules });
  const subjectsOf = identifying(rules, options, { keys });
  let now = MIDNIGHT;
  const store = stores[name]?.(prefix) as Store;
  const limiter = new Limiter(config, {
    decide: (groups) => store.decide(groups, now),
    adjust: (counters) => store.adjust(counters, now),
    reset: (counters) => store.reset(counters, now),
  });

  async function decide(seconds: number, from: From = {}, ask?: DecideOptions): Promise<Decision> {
    const { user, path = "/search", headers } = from;
    const sent = { ...(user && { "x-user": user }), ...headers };
    const subjects = await subjectsOf(sent, `https://api.example.com${path}`);
    now = MIDNIGHT + seconds * 1000;
    const decision = await limiter.decide(subjects, ask);
    if (decision.outcome === "undecided") throw new Error(`undecided: ${decision.detail}`);
    return decision;
  }

  async function take(seconds: number, cost: number, from?: From, ask?: DecideOptions) {
    const decision = await decide(seconds, from, { ...ask, cost });
    return decision.outcome === "allowed"
      ? decision.quotas.map(({ remaining }) => remaining)
      : "denied";
  }

  return {
    decide,
    take,
    left: (seconds, from) => take(seconds, 0, from),
    async admitted(seconds, attempts, from, ask) {
      let count = 0;
      for (let attempt = 0; attempt < attempts; attempt++) {
        if ((await decide(seconds, from, ask)).outcome === "allowed") count++;
      }
      return count;
    },
  };
}

/** The figures of a decision's only policy. */
export function figuresOf(decision: Decision): Quota {
  if (decision.outcome === "undecided") throw new Error("undecided");
  return decision.quotas[0] as Quota;
}

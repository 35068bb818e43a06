import type { ConfigInput, RuleInput } from "../../src/config/index.ts";
import type { RuntimeOptions } from "./runtime.ts";

/** The service that the user of a limiter pays for: Redis commands, Durable Objects, or none. */
export type Billing = "redis" | "durable-objects" | "none";

/** A Worker that the bench measures, with its configuration. Only the baseline has no limit. */
export interface Subject {
  readonly name: string;
  readonly title: string;
  readonly billing: Billing;
  /** Whether the subject is Weir, which must never admit more than the limit and `mayExceedBy`. */
  readonly isWeir: boolean;
  /** The requests over its limit that a client may get in one isolate. @default 0 */
  readonly mayExceedBy?: number;
  /** The length of the subject's windows, in milliseconds; undefined for the baseline. */
  readonly windowMs: number | undefined;
  /**
   * Returns the options to start the Worker. `Environment.startWorker` adds the servers' addresses.
   */
  readonly runtimeOptions: (limit: number) => RuntimeOptions;
}

const HOUR_SECONDS = 3600;
/** The longest period of Cloudflare's `ratelimits` binding. */
const NATIVE_SECONDS = 60;

export interface WeirOptions {
  readonly clock?: "edge" | "store";
  readonly store?: "durable-object";
  /** With `false`, Weir calls the store for every decision. */
  readonly lease?: false;
  readonly async?: true;
  readonly sliding?: true;
  /** Modes of further rules with the same limit, for the same requests. */
  readonly beside?: readonly ("shadow" | "mark")[];
}

/** Weir's configuration with one rule that limits the requests of the bench. */
export function weirConfig(
  limit: number,
  { clock, store, lease, async, sliding, beside = [] }: WeirOptions = {},
): ConfigInput {
  const limited: RuleInput = {
    name: "limited",
    match: { paths: ["/limited"] },
    limit,
    window: "1h",
    // With "open", the bench could not distinguish an undecided request from an admitted request.
    ...(async ? { async } : { onError: "closed" }),
    ...(lease === false && { lease }),
    ...(sliding && { sliding }),
  };
  const others = beside.map((mode): RuleInput => {
    const { onError: _, ...rest } = limited;
    return { ...rest, name: mode, mode };
  });
  return { rules: [limited, ...others], ...(clock && { clock }), ...(store && { store }) };
}

function weir(name: string, title: string, options: WeirOptions): Subject {
  const durableObject = options.store === "durable-object";
  return {
    name,
    title,
    billing: durableObject ? "durable-objects" : "redis",
    isWeir: true,
    ...(options.async && { mayExceedBy: 1 }),
    windowMs: HOUR_SECONDS * 1000,
    runtimeOptions: (limit) => ({
      worker: durableObject ? "weir-durable-object.ts" : "weir.ts",
      vars: {
        // All subjects share one Redis and have the same clients, so each subject needs its own
        // prefix for its keys in Redis.
        CONFIG: JSON.stringify({ ...weirConfig(limit, options), prefix: name }),
      },
      durableObject,
    }),
  };
}

function peer(name: string, title: string, vars = {}, worker = `${name}.ts`): Subject {
  return {
    name,
    title,
    billing: "redis",
    isWeir: false,
    windowMs: HOUR_SECONDS * 1000,
    runtimeOptions: (limit) => ({
      worker,
      vars: { ...vars, LIMIT: `${limit}`, WINDOW_SECONDS: `${HOUR_SECONDS}` },
    }),
  };
}

export const BASELINE = "baseline";

export const SUBJECTS: readonly Subject[] = [
  {
    name: BASELINE,
    title: "forward only (the baseline)",
    billing: "none",
    isWeir: false,
    windowMs: undefined,
    runtimeOptions: () => ({ worker: "baseline.ts", vars: {} }),
  },
  weir("weir", "Weir", {}),
  weir("weir-store", 'Weir, `clock: "store"`', { clock: "store" }),
  weir("weir-modes", "Weir, with `shadow` and `mark`", { beside: ["shadow", "mark"] }),
  weir("weir-exact", "Weir, `lease: false`", { lease: false }),
  weir("weir-exact-store", 'Weir, `lease: false`, `clock: "store"`', {
    lease: false,
    clock: "store",
  }),
  weir("weir-async", "Weir, `async: true`", { async: true }),
  weir("weir-sliding", "Weir, `sliding: true`", { sliding: true }),
  weir("weir-durable-object", "Weir on Durable Objects", { store: "durable-object" }),
  peer("upstash-ratelimit", "@upstash/ratelimit, fixedWindow"),
  peer(
    "upstash-ratelimit-alone",
    "@upstash/ratelimit without auto-pipelining",
    { AUTO_PIPELINING: "off" },
    "upstash-ratelimit.ts",
  ),
  peer("hono-rate-limiter", "hono-rate-limiter, RedisStore"),
  {
    name: "native",
    title: "`ratelimits` binding (emulated)",
    billing: "none",
    isWeir: false,
    windowMs: NATIVE_SECONDS * 1000,
    runtimeOptions: (limit) => ({
      worker: "native.ts",
      vars: {},
      rateLimit: { limit, period: NATIVE_SECONDS },
    }),
  },
];

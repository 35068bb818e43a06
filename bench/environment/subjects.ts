import type { ConfigInput } from "../../src/config/index.ts";
import type { RuntimeOptions } from "./runtime.ts";

/** What a subject pays for: commands of Redis, Durable Objects, or nothing that is billed by use. */
export type Billing = "redis" | "durable-objects" | "none";

/** A way to limit, or not to: a Worker, and how it is configured. */
export type Subject = {
  name: string;
  title: string;
  billing: Billing;
  /** Whether it is Weir, which must never admit more than the limit. */
  isWeir: boolean;
  /** The window that it counts in; undefined for the floor, which counts nothing. */
  windowMs: number | undefined;
  /** The Worker that keeps a limit, but for what it is told of the origin and of Redis. */
  runtime(limit: number): RuntimeOptions;
};

const HOUR_SECONDS = 3600;
/** The longest period that the platform's binding knows. */
const NATIVE_SECONDS = 60;

export type WeirOptions = {
  clock?: "redis" | "edge";
  store?: "durable-object";
  /** `false` asks the store for every decision. */
  lease?: false;
};

/** The rule of a subject, and beside it as many as are wanted that match nothing that is sent. */
export function weirConfig(
  limit: number,
  { clock, store, lease }: WeirOptions = {},
  others = 0,
): ConfigInput {
  const limited: ConfigInput["rules"][number] = {
    name: "limited",
    match: { paths: ["/limited"] },
    limit,
    window: "1h",
    // A decision that could not be made must not look like one that was.
    onError: "closed",
    ...(lease === false && { lease }),
  };
  const rest = Array.from({ length: others }, (_, index) => ({
    name: `other-${index}`,
    match: { methods: ["GET", "POST"], paths: [`/other-${index}/:id`, `/v${index}/*`] },
    limit: 100,
    window: "1h" as const,
  }));
  return { rules: [limited, ...rest], ...(clock && { clock }), ...(store && { store }) };
}

function weir(name: string, title: string, options: WeirOptions): Subject {
  const durableObject = options.store === "durable-object";
  return {
    name,
    title,
    billing: durableObject ? "durable-objects" : "redis",
    isWeir: true,
    windowMs: HOUR_SECONDS * 1000,
    runtime: (limit) => ({
      worker: durableObject ? "weir-durable-object.ts" : "weir.ts",
      vars: {
        // A prefix of its own: the subjects share one Redis, and the clients are the same.
        CONFIG: JSON.stringify({ ...weirConfig(limit, options), prefix: name }),
      },
      durableObject,
    }),
  };
}

function peer(name: string, title: string): Subject {
  return {
    name,
    title,
    billing: "redis",
    isWeir: false,
    windowMs: HOUR_SECONDS * 1000,
    runtime: (limit) => ({
      worker: `${name}.ts`,
      vars: { LIMIT: `${limit}`, WINDOW_SECONDS: `${HOUR_SECONDS}` },
    }),
  };
}

export const FLOOR = "floor";

export const SUBJECTS: readonly Subject[] = [
  {
    name: FLOOR,
    title: "forward only (the floor)",
    billing: "none",
    isWeir: false,
    windowMs: undefined,
    runtime: () => ({ worker: "floor.ts", vars: {} }),
  },
  weir("weir", "Weir", {}),
  weir("weir-edge", 'Weir, `clock: "edge"`', { clock: "edge" }),
  weir("weir-exact", "Weir, `lease: false`", { lease: false }),
  weir("weir-exact-edge", 'Weir, `lease: false`, `clock: "edge"`', { lease: false, clock: "edge" }),
  weir("weir-durable-object", "Weir on Durable Objects", { store: "durable-object" }),
  peer("upstash-ratelimit", "@upstash/ratelimit, fixedWindow"),
  peer("hono-rate-limiter", "hono-rate-limiter, RedisStore"),
  {
    name: "native",
    title: "`ratelimits` binding (emulated)",
    billing: "none",
    isWeir: false,
    windowMs: NATIVE_SECONDS * 1000,
    runtime: (limit) => ({
      worker: "native.ts",
      vars: {},
      rateLimit: { limit, period: NATIVE_SECONDS },
    }),
  },
];

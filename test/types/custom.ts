// `npm run types` compiles this file; nothing runs it. Each @ts-expect-error line is an assertion: without an error in
// the next line, the compiler reports the comment.
import { type Next, rateLimit, WeirService, weir } from "edge-weir";
import {
  type ConfigInput,
  type CustomContext,
  type CustomKeys,
  type Denial,
  type DenialContext,
  defineConfig,
  type LimitClient,
  type LimitSourceInput,
  type SettleContext,
} from "edge-weir/config";
import { llmReserve, llmUsage } from "edge-weir/llm";
import type { Context } from "hono";

const rules = [{ name: "api", key: "custom:plan", limit: 5, window: "1m" }] as const;

/** The function knows the types of its arguments, also of the bindings that wrangler generates. */
export const inferred = defineConfig({
  rules,
  custom: {
    keys: {
      plan: (request, { env, ctx, c }) => {
        env.COUNTERS.getByName("a");
        ctx.waitUntil(Promise.resolve());
        const user: unknown = c?.get("user");
        return typeof user === "string" ? user : request.headers.get("x-plan");
      },
      async tenant(request) {
        return new URL(request.url).hostname;
      },
    },
  },
});

/** The bindings and the Hono types of a project. */
interface Env {
  readonly PLANS: KVNamespace;
}
interface AppTypes {
  readonly Bindings: Env;
  readonly Variables: { user: string };
}

/** A function may declare its own types for its arguments. */
export const declared: CustomKeys = {
  plan: (request, { env }: { env: Env }) => env.PLANS.get(request.headers.get("x-api-key") ?? ""),
  named: (_, { env }: CustomContext<Env>) => env.PLANS.get("a"),
  user: (_, { c }: { c?: Context<AppTypes> }) => c?.get("user"),
  // biome-ignore lint/suspicious/noExplicitAny: users may write it.
  any: (_, { env }: any) => env.PLANS.get("a"),
};

/** Functions for costs know the types of their arguments, and may declare their own. */
export const costs = defineConfig({
  rules: [
    {
      ...rules[0],
      cost: { reserve: "custom:depth", settle: "custom:usage", max: 100, default: 5 },
    },
    { ...rules[0], name: "bytes", cost: "body:bytes", count: { status: [200], reserve: true } },
  ],
  custom: {
    costs: {
      depth: async (request, { env, c }) => {
        env.COUNTERS.getByName("a");
        return c ? undefined : (await request.clone().text()).length;
      },
      plain: () => 5,
      declared: (_: Request, { env }: { env: Env }) => (env.PLANS ? 1 : 2),
    },
    settle: {
      usage: async (response, { request, env }) => {
        env.COUNTERS.getByName("a");
        return response.ok && request.method === "POST"
          ? (await response.text()).length
          : undefined;
      },
      declared: (response: Response, { env }: SettleContext<Env>) =>
        env.PLANS ? response.status : 1,
    },
  },
});

/** The functions of edge-weir/llm compile in their groups, and in functions of users. */
export const budget = defineConfig({
  rules,
  custom: {
    costs: {
      estimate: llmReserve({ output: 500 }),
      double: async (request) => 2 * (await llmReserve()(request)),
    },
    settle: {
      usage: llmUsage(),
      logged: async (response) => (await llmUsage()(response)) ?? 5,
      partial: () => ({ atLeast: 5 }),
    },
  },
});

/** The compiler reports each of these faults. */
export function refusesFaults(): void {
  // @ts-expect-error a function returns a text
  defineConfig({ rules, custom: { keys: { plan: () => 5 } } });
  // @ts-expect-error a cost is a number
  defineConfig({ rules, custom: { costs: { depth: () => "5" } } });
  // @ts-expect-error the cost of a request is known before its response
  defineConfig({ rules, custom: { costs: { depth: () => ({ atLeast: 5 }) } } });
  // @ts-expect-error a part of a cost is a number
  defineConfig({ rules, custom: { settle: { depth: () => ({ atLeast: "5" }) } } });
  // @ts-expect-error a cost is a number
  defineConfig({ rules, custom: { settle: { usage: async () => "5" } } });
  // @ts-expect-error there is no such field
  defineConfig({ rules: [{ ...rules[0], cost: { from: "custom:depth", maximum: 5 } }] });
  // @ts-expect-error llmUsage reads responses, and belongs in settle
  defineConfig({ rules, custom: { costs: { usage: llmUsage() } } });
  // @ts-expect-error llmReserve reads requests, and belongs in costs
  defineConfig({ rules, custom: { settle: { estimate: llmReserve() } } });
  // @ts-expect-error llmReserve returns the function
  defineConfig({ rules, custom: { costs: { estimate: llmReserve } } });
  // @ts-expect-error llmUsage returns the function
  defineConfig({ rules, custom: { settle: { usage: llmUsage } } });
  // @ts-expect-error a function, not a text
  defineConfig({ rules, custom: { keys: { plan: "pro" } } });
  // @ts-expect-error the functions are in keys
  defineConfig({ rules, custom: { plan: () => "pro" } });
  // @ts-expect-error there is no such binding
  defineConfig({ rules, custom: { keys: { plan: (_, { env }) => env.PLANS.get("a") } } });
  // @ts-expect-error no such word
  defineConfig({ rules: [{ ...rules[0], for: "http" }] });
  // @ts-expect-error functions are no option of weir
  weir(inferred, { keys: {} });
  // @ts-expect-error functions are no option of rateLimit
  rateLimit(inferred, { keys: {} });
}

/** A plain object compiles in place of a configuration, and its rules' names are checked. */
export function acceptsPlainObjects(input: ConfigInput): unknown[] {
  const plan = () => "pro";
  const plain = { rules, custom: { keys: { plan } } };
  class Limits extends WeirService<typeof plain> {
    readonly config = plain;
  }
  const call = (limits: Service<Limits>) => limits.limit("api");
  // @ts-expect-error there is no such rule
  const mistyped = (limits: Service<Limits>) => limits.limit("typo");
  // @ts-expect-error there is no such rule
  rateLimit({ rules }, { rule: "typo" });
  return [
    weir(input),
    weir({ rules, custom: { keys: { plan: (request) => request.headers.get("x-plan") } } }),
    rateLimit({ rules }, { rule: "api" }),
    rateLimit({ rules: [{ name: "login", limit: 5, window: "1m" }] }, { rule: "login" }),
    call,
    mistyped,
  ];
}

/** The fourth argument of `fetch` may be the next handler of a framework. */
export const inFrontOfNext = {
  fetch(request, env, ctx) {
    return weir(inferred).fetch(request, env, ctx, async (admitted) => new Response(admitted.url));
  },
} satisfies ExportedHandler<Env>;

export const onRequest: PagesFunction<Env> = (context) =>
  weir(inferred).fetch(context.request, context.env, context, context.next);

export const next: Next = () => new Response();

/** The arguments of functions for responses have types, and such a function returns a response. */
export const responses = defineConfig({
  rules: [{ name: "page", limit: 5, window: "1m", response: "custom:page" }],
  custom: {
    responses: {
      page: (denial, { request, env, ctx, c }) => {
        env.COUNTERS.getByName("a");
        ctx.waitUntil(Promise.resolve());
        const { rule, retryAfterMs, retryAfterSeconds, violated, quotas } = denial;
        const figures = [retryAfterMs, retryAfterSeconds, violated.length, quotas[0]?.remaining];
        return Response.json({ rule, figures, url: request.url, user: c?.get("user") });
      },
      declared: async (denial: Denial, { env }: DenialContext<Env>) =>
        new Response(await env.PLANS.get(denial.rule)),
    },
  },
});

/** The compiler reports each of these faults. */
export function refusesFaultyResponses(): void {
  // @ts-expect-error a function returns a response
  defineConfig({ rules, custom: { responses: { page: () => "no" } } });
  // @ts-expect-error a name with its kind
  defineConfig({ rules: [{ ...rules[0], response: "page" }] });
  // @ts-expect-error a function is no value of response
  defineConfig({ rules: [{ ...rules[0], response: () => new Response() }] });
}

const source = { from: "custom:quota", max: 1000, default: 100 } as const;
const claim: LimitSourceInput = { from: "jwt:/limits/rpm", max: 1000, default: 100 };

/** A limit, a capacity and open requests may have a source. Functions for limits know the types of their arguments. */
export const limits = defineConfig({
  rules: [
    {
      name: "api",
      limit: { ...source, cacheFor: "5m" },
      window: "1m",
      capacity: { ...source, max: 2000, default: 200, cacheFor: 300 },
      concurrent: { ...source, cacheFor: "0s" },
      tiers: { by: "jwt:plan", limits: { pro: { limits: [{ limit: claim, window: "1m" }] } } },
    },
  ],
  custom: {
    limits: {
      quota: async ({ key, keys, request }, { env, ctx }) => {
        env.COUNTERS.getByName("a");
        ctx.waitUntil(Promise.resolve());
        return request?.headers.has("x-plan") ? key.length : keys.at(0)?.length;
      },
      none: () => null,
      declared: async ({ key }: LimitClient, { env }: CustomContext<Env>) =>
        env.PLANS.get<number>(key, "json"),
    },
  },
});

/** The compiler reports each of these faults. */
export function refusesFaultyLimits(): void {
  const rule = { name: "api", window: "1m" } as const;
  // @ts-expect-error no default
  defineConfig({ rules: [{ ...rule, limit: { from: "custom:quota", max: 1000 } }] });
  // @ts-expect-error no maximum
  defineConfig({ rules: [{ ...rule, limit: { from: "custom:quota", default: 100 } }] });
  // @ts-expect-error there is no such field
  defineConfig({ rules: [{ ...rule, limit: { ...source, fallback: 100 } }] });
  // @ts-expect-error the name of a source is a text
  defineConfig({ rules: [{ ...rule, limit: { ...source, from: () => 5 } }] });
  // @ts-expect-error a text is no source
  defineConfig({ rules: [{ ...rule, limit: "custom:quota" }] });
  // @ts-expect-error a function is no source
  defineConfig({ rules: [{ ...rule, limit: () => 5 }] });
  // @ts-expect-error the quota that can be reserved is the same for all clients
  defineConfig({ rules: [{ ...rule, limit: source, maxReserved: source }] });
  // @ts-expect-error a limit is a number
  defineConfig({ rules, custom: { limits: { quota: () => "5" } } });
  // @ts-expect-error the functions are in limits
  defineConfig({ rules, custom: { limit: { quota: () => 5 } } });
  // @ts-expect-error a client has no such field
  defineConfig({ rules, custom: { limits: { quota: ({ identity }) => identity } } });
}

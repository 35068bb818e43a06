import type { Context } from "hono";
import * as v from "valibot";
import type { CalendarUnit } from "./calendar.ts";
import { faultText } from "./faults.ts";
import { anyMapOf, fields, textMatching } from "./fields.ts";

/** The quota of one policy for one client, after a decision. A policy is one window of a rule. */
export interface Quota {
  /**
   * The policy's name in the RateLimit headers: the rule's name. If the rule has several windows, the window is
   * appended, such as `search/1m`.
   */
  readonly policy: string;
  /** The quota that each window grants. */
  readonly limit: number;
  /** The length of the window in milliseconds; for calendar windows, the length of the current window. */
  readonly windowMs: number;
  /** The unit of the calendar, if the window is a calendar window. */
  readonly calendar?: CalendarUnit;
  /**
   * Present if the policy limits open requests (`concurrent`), so it has no windows. `limit` is then the maximum
   * number of open requests, and `windowMs` the time after which a slot that nobody gives back expires.
   */
  readonly concurrent?: true;
  /**
   * The number of sub-windows, if the limit holds for every interval of `windowMs` (`sliding`). The times of this quota
   * are then those at which the first counted sub-window does not count any more.
   */
  readonly sliding?: number;
  /** Quota left in the current window, including quota that rolled over; never below 0. */
  readonly remaining: number;
  /** Milliseconds until the current window ends; more than 0. */
  readonly resetMs: number;
  /**
   * The time at which the current window ends, in milliseconds since the Unix epoch. The store's clock determines
   * this time. After a refund, and with `clock: "edge"`, the Worker's clock does.
   */
  readonly resetAt: number;
  /**
   * Whether the request exceeds this quota. The request is then denied or, if the rule has the mode `mark`, marked.
   */
  readonly violated: boolean;
  /**
   * Milliseconds until the same request may fit into this quota; 0 if it fits now. Missing if the request exceeds the
   * quota and can never fit, because its cost is above the limit or, if set, the `capacity`.
   */
  readonly retryAfterMs?: number;
  /**
   * Milliseconds until the start of the window whose quota covers the whole reservation; 0 if no quota is reserved.
   * After a check, the time for the quota that the call would reserve.
   */
  readonly reservationDelayMs: number;
}

declare global {
  // `wrangler types` adds a project's bindings to this interface. It is also declared here, because this file must
  // compile without the types of Workers.
  namespace Cloudflare {
    interface Env {}
  }
}

/**
 * The type of a Worker's bindings, from `wrangler types`. If no bindings are generated, it is `any`, so that every
 * binding compiles.
 */
export type WorkerBindings = keyof Cloudflare.Env extends never
  ? // biome-ignore lint/suspicious/noExplicitAny: the compiler does not know the project's bindings.
    any
  : Cloudflare.Env;

/**
 * The second argument of a function in `custom`.
 *
 * @typeParam Bindings the type of the Worker's bindings
 * @example async function plan(request: Request, { env }: CustomContext<Env>) { … }
 */
export interface CustomContext<Bindings = WorkerBindings> {
  /** The Worker's bindings: its vars, secrets, KV namespaces, services and so on. */
  readonly env: Bindings;
  /** Cloudflare's context of this request. With `waitUntil`, a task can run after the response is sent. */
  readonly ctx: { waitUntil(task: Promise<unknown>): void };
  /**
   * Hono's context of this request, for example for the session of the user: `c?.get("session")`.
   * Set only if the middleware `rateLimit` calls the function.
   */
  readonly c?: Context;
}

/** The result of a function for `custom:NAME`. If it is not a text, the key counts as absent. */
export type CustomKeyValue = string | null | undefined;

/**
 * Computes the value of a key `custom:NAME`. The key counts as absent if the function throws, if it takes longer than
 * `timeoutMs`, or if its result is an empty text or not a text. Weir then uses the next alternative of the key, or
 * the client's address.
 *
 * The function receives the request that will be forwarded. To read the body, it must clone the request.
 */
export type CustomKey = CustomFunction<CustomContext, CustomKeyValue>;

/** The result of a function that computes a cost. If it is not a whole number, the cost is unknown. */
export type CustomCostValue = number | undefined;

/**
 * The result of a settle function that knows only a part of the cost, for example because the response broke off. The
 * cost is then unknown, but each rule charges at least this number.
 */
export interface PartialCost {
  /** A whole number from 0 to 999999999999999. */
  readonly atLeast: number;
}

/** A whole number or a partial cost. After any other result, the cost is unknown. */
export type CustomSettleValue = CustomCostValue | PartialCost;

/**
 * Computes the cost of a request for `cost: "custom:NAME"`: a whole number from 0 to 999999999999999. A request with
 * a cost of 0 is free. The cost counts as unknown if the result is no such number, if the function throws, or if it
 * takes longer than `timeoutMs`. Weir then charges the `max` of the rule's cost, else its `default`, but at least 1.
 *
 * The function receives the request that will be forwarded. To read the body, it must clone the request. Reading a
 * clone throws an error after `timeoutMs`, and if the isolate has no room for the body.
 *
 * @example async (request) => [await request.clone().json()].flat().length
 */
export type CustomCost = CustomFunction<CustomContext, CustomCostValue> &
  TokensOf<"request"> & {
    /**
     * The lowest number that the function returns. While a client has less quota left, Weir denies its requests from
     * memory without calling the function.
     *
     * @default 0
     */
    readonly atLeast?: number;
  };

/**
 * The second argument of a function in `custom.settle`.
 *
 * @typeParam Bindings the type of the Worker's bindings
 */
export interface SettleContext<Bindings = WorkerBindings> extends CustomContext<Bindings> {
  /** The request that was forwarded. Its body has been read. */
  readonly request: Request;
  /**
   * The cost that was charged before the request was forwarded, or 0. If functions settle several rules of the
   * request, this is the highest of their charges. If the function returns undefined, a reserve stays charged, unless
   * the rule's cost has a `default`.
   */
  readonly reserved: number;
}

/**
 * Computes the final cost of a request for `settle: "custom:NAME"`: a whole number from 0 to 999999999999999. Its
 * first argument is the origin's response. The function may read its body to the end while the client receives it.
 *
 * @example async (response) => (await response.json()).usage.total_tokens
 */
export type CustomSettle = CustomFunction<SettleContext, CustomSettleValue, Response> &
  TokensOf<"response">;

/**
 * Lets the compiler refuse `llmUsage()` in `custom.costs` and `llmReserve()` in `custom.settle`. The property exists
 * in types only, and your own functions do not need it.
 */
export interface TokensOf<Subject extends "request" | "response"> {
  readonly tokensOf?: Subject;
}

/** A client whose limit is asked for: the first argument of a function in `custom.limits`. */
export interface LimitClient {
  /** The value of the rule's key, such as an API key. If the key is a list, the value of its first element. */
  readonly key: string;
  /** The value of each element of the rule's key. */
  readonly keys: readonly string[];
  /** The request without its body; undefined for the call of a program, and if an operator looks up the client. */
  readonly request: Request | undefined;
}

/** The limit of a client. If it is no whole number from 0, the client has the `default`. */
export type CustomLimitValue = number | null | undefined;

/**
 * Returns a client's number for `{ from: "custom:NAME" }`. Weir asks at most once for each client in an isolate and
 * `cacheFor`, and not while it denies the client from memory. If the function throws, or takes longer than `timeoutMs`,
 * the client keeps its last number, or has the `default`.
 *
 * @example async ({ key }, { env }) => (await env.PLANS.get(key, "json"))?.rpm
 */
export type CustomLimit = CustomFunction<CustomContext, CustomLimitValue, LimitClient>;

/** A denied request: the first argument of a function in `custom.responses`. */
export interface Denial {
  /** The name of the first rule that denied the request. */
  readonly rule: string;
  /**
   * Present if the request can never be admitted, because its cost is above what a limit can ever grant. The response
   * then has no Retry-After.
   */
  readonly reason?: "exceeds-limit";
  /** Milliseconds until the same request may be admitted, without the rule's `retryJitter`. Missing with a `reason`. */
  readonly retryAfterMs?: number;
  /**
   * The value of the header Retry-After: whole seconds, with the rule's `retryJitter`. Missing with a `reason`.
   */
  readonly retryAfterSeconds?: number;
  /** The quotas that denied the request, at least one. */
  readonly violated: readonly Quota[];
  /**
   * The quotas of all rules that apply to the request, one for each window. A denial from memory may lack some
   * quotas.
   */
  readonly quotas: readonly Quota[];
}

/**
 * The second argument of a function in `custom.responses`.
 *
 * @typeParam Bindings the type of the Worker's bindings
 */
export interface DenialContext<Bindings = WorkerBindings> extends CustomContext<Bindings> {
  /**
   * The denied request. It is not forwarded, so the function may read its body. Read only bodies with a small
   * Content-Length, because a client can send a body of any length.
   */
  readonly request: Request;
}

/**
 * Creates the response to a denied request for `response: "custom:NAME"`. The status must be 200, or from 400 to 599.
 * The default response replaces the result if the function throws, if the status is not allowed, if the body fails or
 * is longer than 1 MiB, or if the function and the body take longer than `timeoutMs`.
 *
 * Weir sets Retry-After (without a `reason`), Cache-Control: no-store and the RateLimit headers, and replaces these headers of the
 * response. It keeps Access-Control-* and Vary. If the response has neither Access-Control-Allow-Origin nor
 * Access-Control-Allow-Credentials, pages of all other origins may read it, but not if they send cookies.
 *
 * @example ({ retryAfterSeconds }) => Response.json({ wait: retryAfterSeconds }, { status: 429 })
 */
export type CustomResponse = CustomFunction<DenialContext, Response, Denial>;

/** A client has used a share of its quota: the first argument of `custom.events`. */
export interface QuotaEvent {
  /** The mode of the rule. */
  readonly mode: "enforce" | "shadow" | "mark";
  /** The name of the rule. */
  readonly rule: string;
  /** The name of the quota, as in the RateLimit headers: the name of the rule, or such as `search/1h`. */
  readonly policy: string;
  /** The hash of the client's key. Operators see the same text, for example in `weir peek`. */
  readonly client: string;
  /** The client's tier; missing without one. If tiers' names may be credentials, it is `#1`, `#2` and so on. */
  readonly tier?: string;
  /** The share of the rule's `notify` that was reached. */
  readonly share: number;
  /** The quota used, in the unit of `cost`. */
  readonly used: number;
  /** The quota of which `share` is a share: the client's limit, or its `capacity`. */
  readonly limit: number;
  /** When the window ends, in milliseconds since the Unix epoch. */
  readonly resetAt: number;
}

/**
 * Receives the events of all rules with `notify`, after the decision and in the background. If the function fails, the
 * event is not repeated, but its log line remains.
 *
 * @example (event, { env }) => env.EVENTS.send(event)
 */
export type CustomEvents = CustomFunction<CustomContext, unknown, QuotaEvent>;

/**
 * The type of a function in `custom`. Its arguments have the types `Subject` and `Context`. It returns a `Result`, or
 * a promise of a `Result`.
 */
type CustomFunction<Context, Result, Subject = Request> =
  | TypedFunction<Subject, Context, Result>
  | AnnotatedFunction<Result>;

/** The compiler infers the types of parameters without annotations from this type. */
type TypedFunction<Subject, Context, Result> = (
  subject: Subject,
  context: Context,
) => Result | Promise<Result>;

/**
 * Accepts functions whose parameters have any annotation, such as the project's own type of `env`. The second
 * signature only prevents the compiler from inferring the types of parameters from this type.
 */
interface AnnotatedFunction<Result> {
  // biome-ignore lint/suspicious/noExplicitAny: the compiler must accept every annotation.
  (subject: any, context: any): Result | Promise<Result>;
  // biome-ignore lint/suspicious/noExplicitAny: the compiler must accept every annotation.
  <_>(subject: any, context: any): Result | Promise<Result>;
}

/** The functions for the keys `custom:NAME`, by NAME. */
export type CustomKeys = Readonly<Record<string, CustomKey>>;

/** The functions for `cost: "custom:NAME"`, by NAME. */
export type CustomCosts = Readonly<Record<string, CustomCost>>;

/** The functions for `{ from: "custom:NAME" }`, by NAME. */
export type CustomLimits = Readonly<Record<string, CustomLimit>>;

/** The functions for `settle: "custom:NAME"`, by NAME. */
export type CustomSettles = Readonly<Record<string, CustomSettle>>;

/** The functions for `response: "custom:NAME"`, by NAME. */
export type CustomResponses = Readonly<Record<string, CustomResponse>>;

/** Your own functions. A function computes a client's key, a tier, a cost, or the response to a denied request. */
export interface CustomInput {
  /**
   * The functions for the keys `custom:NAME` of the rules, by NAME, which consists of the characters `A-Z a-z 0-9 _`.
   * A function gets the request and a {@link CustomContext}. It returns a text, or a promise of a text. Weir calls it
   * at most once for each request. All functions for one request together may take at most `timeoutMs`.
   *
   * @default none
   * @example { plan: (request, { env }) => env.PLANS.get(request.headers.get("x-api-key")) }
   */
  readonly keys?: CustomKeys | undefined;
  /**
   * The functions for the costs `custom:NAME` of requests. A function gets the request and a {@link CustomContext}.
   * It returns a whole number from 0 to 999999999999999, or a promise of such a number. Weir calls it at most once
   * for each request, and only if a rule needs its result. These functions share the time of the functions in `keys`.
   *
   * @default none
   * @example { batch: async (request) => [await request.clone().json()].flat().length }
   */
  readonly costs?: CustomCosts | undefined;
  /**
   * The functions for limits `{ from: "custom:NAME" }`. A function gets a {@link LimitClient} and a
   * {@link CustomContext}. It returns a whole number from 0, or a promise of such a number.
   *
   * @default none
   * @example { quota: async ({ key }, { env }) => (await env.PLANS.get(key, "json"))?.rpm }
   */
  readonly limits?: CustomLimits | undefined;
  /**
   * The functions for `settle: "custom:NAME"`. A function gets the origin's response and a {@link SettleContext}. It
   * returns the final cost, or undefined if the cost is unknown, or a promise of either.
   *
   * @default none
   * @example { usage: async (response) => (await response.json()).usage?.total_tokens }
   */
  readonly settle?: CustomSettles | undefined;
  /**
   * The functions for `response: "custom:NAME"`. A function gets a {@link Denial} and a {@link DenialContext}. It
   * returns a Response, or a promise of a Response, with the status 200, or from 400 to 599.
   *
   * @default none
   * @example { page: ({ retryAfterSeconds }) => new Response("Slow down.", { status: 429 }) }
   */
  readonly responses?: CustomResponses | undefined;
  /**
   * The function for the events of rules with `notify`. It gets a {@link QuotaEvent} and a {@link CustomContext}.
   *
   * @default none: events are only logged
   * @example (event, { env }) => env.EVENTS.send(event)
   */
  readonly events?: CustomEvents | undefined;
}

const NAME = faultText("the NAME in custom:NAME: one or more of A-Z, a-z, 0-9 and _");

/** Returns the schema of functions by their names. */
function functionsSchema<Function>(name: string, example: string) {
  return v.optional(
    anyMapOf(
      textMatching(/^\w+$/, NAME),
      v.custom<Function>(
        (value) => typeof value === "function",
        faultText(() => `a function, such as ${example}`),
      ),
      faultText(
        () => `an object of functions, such as { ${name}: ${example.replace(/=> .*/, "=> …")} }`,
      ),
    ),
  );
}

/** The output has Maps, in which `__proto__` and `constructor` are ordinary names. */
export const CustomSchema = fields(
  {
    keys: functionsSchema<CustomKey>(
      faultText("plan"),
      faultText('(request) => request.headers.get("x-plan")'),
    ),
    costs: functionsSchema<CustomCost>(faultText("depth"), faultText("async (request) => 5")),
    limits: functionsSchema<CustomLimit>(faultText("quota"), faultText("async ({ key }) => 100")),
    settle: functionsSchema<CustomSettle>(faultText("usage"), faultText("async (response) => 5")),
    responses: functionsSchema<CustomResponse>(
      faultText("page"),
      faultText('() => new Response("Slow down.", { status: 429 })'),
    ),
    events: v.optional(
      v.custom<CustomEvents>(
        (value) => typeof value === "function",
        faultText("a function, such as (event, { env }) => env.EVENTS.send(event)"),
      ),
    ),
  },
  faultText("{ keys: { plan: (request) => … } }"),
);

/** The checked form of {@link CustomInput}. */
export type CustomFunctions = v.InferOutput<typeof CustomSchema>;

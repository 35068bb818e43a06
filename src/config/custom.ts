import type { Context } from "hono";
import * as v from "valibot";
import { anyMapOf, fields, textMatching } from "./fields.ts";

declare global {
  // `wrangler types` adds a project's bindings to this interface. It is declared here too, because
  // this file also compiles without the types of Workers.
  namespace Cloudflare {
    interface Env {}
  }
}

/**
 * The type of a Worker's bindings: the bindings that `wrangler types` has generated. Without them, it is
 * `any`, so that every binding compiles.
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
  /** Cloudflare's context of this request. `waitUntil` lets a task run after the response is sent. */
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
 * Computes the value of a key `custom:NAME`. The key counts as absent if the function throws, if it
 * takes longer than `timeoutMs`, or if its result is an empty text or not a text. Weir then uses
 * the next alternative of the key, or the client's address.
 *
 * A function receives the request that will be forwarded. To read the body, it must clone the
 * request.
 */
export type CustomKey = TypedKey | AnnotatedKey;

type Result = CustomKeyValue | Promise<CustomKeyValue>;

/** From this type, the compiler infers the types of parameters that have no annotation. */
type TypedKey = (request: Request, context: CustomContext) => Result;

/**
 * Accepts functions whose parameters have any annotation, such as the project's own type of `env`.
 * Because of the second signature, the compiler infers no types of parameters from this type.
 */
interface AnnotatedKey {
  // biome-ignore lint/suspicious/noExplicitAny: the compiler must accept every annotation.
  (request: any, context: any): Result;
  // biome-ignore lint/suspicious/noExplicitAny: the compiler must accept every annotation.
  <_>(request: any, context: any): Result;
}

/** The functions for the keys `custom:NAME`, each with its NAME as the name of the property. */
export type CustomKeys = Readonly<Record<string, CustomKey>>;

/** Your own functions. Rules use their results as keys of clients, or to select tiers. */
export interface CustomInput {
  /**
   * The functions for the keys `custom:NAME` of the rules. The name of a function is the NAME in
   * the key, and consists of the characters `A-Z a-z 0-9 _`. A function gets the request and a
   * {@link CustomContext}.
   * It returns a text, or a promise of a text. Weir calls it at most once for each request. For one
   * request, all functions together may take at most `timeoutMs`.
   *
   * @default none
   * @example { plan: (request, { env }) => env.PLANS.get(request.headers.get("x-api-key")) }
   */
  readonly keys?: CustomKeys | undefined;
}

const NAME = "the NAME of a key custom:NAME: one or more of A-Z, a-z, 0-9 and _";
const FUNCTION = 'a function, such as (request) => request.headers.get("x-plan")';
const KEYS = "an object of functions, such as { plan: (request) => … }";

/** The output has a Map, in which `__proto__` and `constructor` are ordinary names. */
export const CustomSchema = fields(
  {
    keys: v.optional(
      anyMapOf(
        textMatching(/^\w+$/, NAME),
        v.custom<CustomKey>((value) => typeof value === "function", FUNCTION),
        KEYS,
      ),
    ),
  },
  "{ keys: { plan: (request) => … } }",
);

/** The checked form of {@link CustomInput}. */
export interface CustomFunctions {
  readonly keys?: ReadonlyMap<string, CustomKey> | undefined;
}

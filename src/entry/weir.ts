import type { Env } from "../config/bindings.ts";
import { toConfig } from "../config/define.ts";
import type { Config, ConfigInput } from "../config/schema.ts";
import { type AdminEntry, createAdminEntry } from "./admin-entry.ts";
import {
  createCustomContext,
  perBindings,
  prepareGateway,
  type RequestHandler,
} from "./isolate.ts";

/**
 * A handler that answers admitted requests instead of an origin: a framework's next handler, or an app's own handler.
 * Its request may be a changed copy, which has taken over the body.
 */
export type Next = (request: Request) => Response | Promise<Response>;

/** The handler that {@link weir} creates. */
export interface WeirHandler {
  /**
   * Decides a request, and returns the response of the origin, of `next`, or of Weir.
   *
   * With `next`, Weir fits into every framework. It calls `next(request)` for each admitted request, and ignores the
   * configuration's `origin`. It adds the RateLimit headers to the response of `next`, and charges the rules with
   * `count` or `cost: "header:NAME"` by this response. If `next` throws an error, the error reaches the caller
   * unchanged, and these rules are charged as for a 500.
   *
   * @example
   * const limiter = weir(config);
   * export default {
   *   fetch: (request, env, ctx) => limiter.fetch(request, env, ctx, () => new Response("Hello")),
   * } satisfies ExportedHandler;
   *
   * @param env the Worker's bindings. Without them, only `store: "memory"` can decide requests
   * @param ctx the context of the request, which the functions in `custom` get
   * @param next answers admitted requests; without it, Weir forwards them to the origin
   */
  fetch(
    request: Request,
    env?: object,
    ctx?: Pick<ExecutionContext, "waitUntil">,
    next?: Next,
  ): Promise<Response>;
}

type FetchArguments = Parameters<WeirHandler["fetch"]>;

/** The parts that answer requests with one set of bindings. */
interface Prepared {
  readonly env: Env;
  /** Undefined if no credential of operators is set. */
  readonly admin: AdminEntry | undefined;
  gateway?: RequestHandler;
  nextGateway?: RequestHandler;
}

/**
 * Creates a Worker's handler that limits requests by the rules, and forwards them to an origin.
 *
 * @example
 * export default weir(config);
 * export { CounterObject } from "edge-weir";
 *
 * @param config the configuration that `defineConfig` returned, or the argument of `defineConfig`
 * @throws {ConfigError} if `config` is a plain object that has faults
 */
export function weir(config: Config | ConfigInput): WeirHandler {
  const checkedConfig = toConfig(config);
  const preparedFor = perBindings(
    checkedConfig,
    (env): Prepared => ({
      env,
      admin: createAdminEntry(checkedConfig, env, async (gate) => {
        const { prepareAdmin } = await import("./prepare-admin.ts");
        return prepareAdmin(checkedConfig, env, gate);
      }),
    }),
  );

  const limit = (prepared: Prepared, ...[request, env, ctx, next]: FetchArguments) => {
    const context = createCustomContext((env ?? {}) as Env, ctx);
    if (!next) {
      prepared.gateway ??= prepareGateway(checkedConfig, prepared.env);
      return prepared.gateway.handle(request, context);
    }
    // This gateway needs no origin, so it does not log that the origin is missing.
    prepared.nextGateway ??= prepareGateway(checkedConfig, prepared.env, checkedConfig.rules);
    return prepared.nextGateway.handle(request, context, async (admitted) => {
      const response: unknown = await next(admitted);
      if (isResponse(response)) return response;
      throw new TypeError("The argument next of weir(config).fetch returned no Response.");
    });
  };

  // This is no Hono app with a single route, because Hono's context and routing took a fifth of the CPU time that
  // Weir adds. Weir uses Hono's router to match rules, and Hono's middleware interface.
  return {
    fetch(request, env, ctx, next) {
      const prepared = preparedFor(env);
      const answered = prepared.admin?.(request, !next);
      if (!answered) return limit(prepared, request, env, ctx, next);
      return answered.then((result) =>
        result instanceof Response ? result : limit(prepared, result, env, ctx, next),
      );
    },
  };
}

/** Does not check the class, because a framework may define another class for responses. */
function isResponse(value: unknown): value is Response {
  return typeof value === "object" && value !== null && "status" in value && "headers" in value;
}

import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import type { Gateway } from "./gateway.ts";
import { prepareGateway } from "./prepare-gateway.ts";
import type { CustomKeys } from "./request/custom-key.ts";

/** Options of {@link weir}. */
export interface WeirOptions {
  /**
   * The functions that compute the rules' keys `custom:NAME`. The name of each property is NAME.
   *
   * @default none
   */
  readonly keys?: CustomKeys;
}

/** The handler that {@link weir} creates. It fits Workers with any type of bindings. */
export interface WeirHandler {
  /** @param env the Worker's bindings */
  fetch(request: Request, env: object, ctx?: ExecutionContext): Promise<Response>;
}

/**
 * Creates a Worker's handler that forwards requests to an origin and limits them by the rules.
 *
 * @example
 * export default weir(config);
 * export { CounterObject } from "edge-weir";
 *
 * @param config the configuration that `defineConfig` returned
 */
export function weir(config: Config, { keys = {} }: WeirOptions = {}): WeirHandler {
  let gateway: Gateway | undefined;

  // This is not a Hono app with a single route, because Hono's context and routing took a fifth of
  // the CPU time that Weir adds. Weir uses Hono's router to match rules, and Hono's middleware
  // interface.
  return {
    fetch(request, env) {
      gateway ??= prepareGateway(config, env as Env, { keys });
      return gateway.handle(request);
    },
  };
}

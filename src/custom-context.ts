import { waitUntil } from "cloudflare:workers";
import type { Context } from "hono";
import type { Env } from "./config/bindings.ts";
import type { CustomContext, WorkerBindings } from "./config/custom.ts";

/** Replaces the platform's context of a request if the caller passes none. */
const WITHOUT_CONTEXT: CustomContext["ctx"] = { waitUntil };

/** Creates the second argument of the functions in `custom`. */
export function createCustomContext(
  env: Env,
  ctx: CustomContext["ctx"] | null | undefined,
): CustomContext {
  return { env: toBindings(env), ctx: ctx ?? WITHOUT_CONTEXT };
}

/** Creates the second argument of the functions in `custom`, with Hono's context. */
export function createHonoContext(env: Env, c: Context): CustomContext {
  return { env: toBindings(env), ctx: executionContextOf(c), c };
}

/** Only the user's own code knows the type of the bindings. */
function toBindings(env: unknown): WorkerBindings {
  return env as WorkerBindings;
}

/** Hono throws an error if the caller of the app has passed no context, as many tests do. */
function executionContextOf(c: Context): CustomContext["ctx"] {
  try {
    return c.executionCtx;
  } catch {
    return WITHOUT_CONTEXT;
  }
}

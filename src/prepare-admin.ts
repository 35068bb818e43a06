import { createAdminApp } from "./admin/admin-app.ts";
import type { AdminContext } from "./admin/admin-env.ts";
import { LiveOperations } from "./admin/live-operations.ts";
import type { AdminHandler } from "./admin-entry.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import { controlObject } from "./live-control.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/** Creates the handler of everything below `/_weir/`, for one set of bindings. */
export function prepareAdmin(config: Config, env: Env): AdminHandler {
  const { limiter, mode, keySecret } = sharedLimiter(config, env);
  const operations = new LiveOperations({
    config,
    limiter,
    mode,
    keySecret,
    control: controlObject(env),
  });
  const app = createAdminApp();
  const context: AdminContext = { operations, config };
  return async (request, operator) => app.fetch(request, { context, operator });
}

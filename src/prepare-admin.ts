import { createAdminApp } from "./admin/admin-app.ts";
import type { AdminBindings } from "./admin/admin-env.ts";
import type { Gate } from "./admin/gate.ts";
import { LiveOperations } from "./admin/live-operations.ts";
import type { AdminHandler } from "./admin-entry.ts";
import { resolveBindings } from "./config/bindings.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import { createCustomContext } from "./custom-context.ts";
import { controlObject } from "./live-control.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/** Creates the handler of everything below `/_weir/`, for one set of bindings. */
export function prepareAdmin(config: Config, env: Env, gate: Gate): AdminHandler {
  const { limiter, control: link } = sharedLimiter(config, env);
  const control = controlObject(env);
  const operations = new LiveOperations({
    config,
    bindings: resolveBindings(config, env),
    limiter,
    control,
    overrides: link?.overrides,
    custom: createCustomContext(env, undefined),
  });
  const app = createAdminApp();

  async function recordLogIn(by: string): Promise<void> {
    try {
      await control?.addAuditEntry({ by, action: "log-in" });
    } catch {
      // Operators need the log-in most while something fails.
    }
  }

  const context: AdminBindings["context"] = { operations, config, gate, recordLogIn };
  return async (request, operator) => app.fetch(request, { context, operator });
}

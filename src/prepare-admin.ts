import { createAdminApp } from "./admin/admin-app.ts";
import type { AdminBindings } from "./admin/admin-env.ts";
import type { Gate } from "./admin/gate.ts";
import { LiveOperations } from "./admin/live-operations.ts";
import type { AdminHandler } from "./admin-entry.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import { controlObject } from "./live-control.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/** Creates the handler of everything below `/_weir/`, for one set of bindings. */
export function prepareAdmin(config: Config, env: Env, gate: Gate): AdminHandler {
  const { limiter, mode, keySecret } = sharedLimiter(config, env);
  const control = controlObject(env);
  const operations = new LiveOperations({ config, limiter, mode, keySecret, control });
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

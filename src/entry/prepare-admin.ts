// `weir` loads this file at the first request of an operator, so that a Worker starts sooner.

import { waitUntil } from "cloudflare:workers";
import { createAdminApp } from "../admin/admin-app.ts";
import type { AdminBindings } from "../admin/admin-problem.ts";
import type { Gate } from "../admin/gate.ts";
import { createOperations } from "../admin/live-operations.ts";
import { type Env, resolveBindings } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { withTimeout } from "../request/timeout.ts";
import type { AdminHandler } from "./admin-entry.ts";
import { controlObject, createCustomContext, sharedLimiter } from "./isolate.ts";

/** The maximum time that a log-in waits for its entry in the audit list, in milliseconds. */
const MAX_RECORD_MS = 1000;

/** Creates the handler of all paths below `/_weir/`, for one set of bindings. */
export function prepareAdmin(config: Config, env: Env, gate: Gate): AdminHandler {
  const { limiter, overrides, limits } = sharedLimiter(config, env);
  const control = controlObject(env);
  const operations = createOperations({
    config,
    bindings: resolveBindings(config, env),
    limiter,
    control,
    overrides,
    limits,
    custom: createCustomContext(env, undefined),
  });
  const app = createAdminApp();

  /** Waits for the entry only a short time, because operators need the log-in most while something fails. */
  async function recordLogIn(by: string): Promise<void> {
    const entry = recordEntry(by).catch(() => {});
    waitUntil(entry);
    await withTimeout(entry, MAX_RECORD_MS, () => {});
  }

  // The call throws at once if the control object is missing. An async function turns this into a rejection.
  async function recordEntry(by: string): Promise<void> {
    await control?.addAuditEntry({ by, action: "log-in" });
  }

  const context: AdminBindings["context"] = { operations, config, gate, recordLogIn };
  return async (request, operator) => {
    const answer = Promise.resolve(app.fetch(request, { context, operator }));
    // A change runs to its end even if the client hangs up, so that its entry in the audit list is true.
    if (request.method !== "GET" && request.method !== "HEAD") waitUntil(answer.catch(() => {}));
    return answer;
  };
}

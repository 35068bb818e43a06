import type { Operator } from "./admin/admin-env.ts";
import { readAdminTokens } from "./admin/credentials.ts";
import { createGate } from "./admin/gate.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import { DOCTOR_PATH, runDoctor } from "./doctor.ts";
import { logMisconfigured } from "./log.ts";

/** Answers a request of an operator. */
export type AdminHandler = (request: Request, operator: Operator) => Promise<Response>;

/** The first part of all paths of operators. */
const PATH = "/_weir";

/**
 * Answers a request below `/_weir/` that has a valid credential. For every other request, it returns
 * undefined. Such a request continues like any request, so that nobody can find out whether the surface
 * exists.
 *
 * @param usesOrigin whether Weir forwards requests to the configured origin, so that a fault of the
 * origin matters to the doctor
 * @returns undefined, also as a promise, if the request has to continue
 */
export type AdminEntry = (
  request: Request,
  usesOrigin: boolean,
) => Promise<Response | undefined> | undefined;

/**
 * Creates the entry for operators. If a credential is faulty, logs the fault.
 *
 * @param load creates the handler of all paths except the doctor's. It is called when an operator needs
 * it, so that it does not slow down the Worker's start. If it is undefined, there is only the doctor, so
 * that the bundles of Hono apps do not contain the handler
 * @returns undefined if no valid credential is configured, so that requests cost nothing extra
 */
export function createAdminEntry(
  config: Config,
  env: Env,
  load?: () => Promise<AdminHandler>,
): AdminEntry | undefined {
  const tokens = readAdminTokens(env, logMisconfigured);
  if (tokens.length === 0) return undefined;
  const operatorOf = createGate(tokens);
  let handle: AdminHandler | undefined;

  async function answer(request: Request, path: string, usesOrigin: boolean) {
    const operator = await operatorOf(request);
    if (!operator) return undefined;
    if (path === DOCTOR_PATH && request.method === "POST" && operator.role === "admin") {
      return runDoctor(request, config, env, usesOrigin);
    }
    handle ??= await load?.();
    return handle?.(request, operator);
  }

  return (request, usesOrigin) => {
    // Most requests end here, without the cost of parsing a URL.
    if (!request.url.includes(PATH)) return undefined;
    const path = URL.parse(request.url)?.pathname;
    if (path !== PATH && !path?.startsWith(`${PATH}/`)) return undefined;
    return answer(request, path, usesOrigin);
  };
}

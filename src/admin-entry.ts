import { createAttempts } from "./admin/attempts.ts";
import { readCredentials } from "./admin/credentials.ts";
import { createGate, type Gate } from "./admin/gate.ts";
import type { Operator } from "./admin/operator.ts";
import { withSecurityFields } from "./admin/security-fields.ts";
import { withoutCredentials } from "./admin/without-credentials.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import { DOCTOR_PATH, runDoctor } from "./doctor.ts";
import { logMisconfigured } from "./log.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/** The first part of all paths of operators. */
const PATH = "/_weir";
/** The page with the form for a token, and the first part of the paths of its assets. */
const LOG_IN = `${PATH}/login`;

/** Answers a request of an operator, or a request to the log-in page. */
export type AdminHandler = (request: Request, operator: Operator | undefined) => Promise<Response>;

/**
 * Answers a request below `/_weir/` that has a valid credential. Every other request has to continue like any
 * request, so that nobody can find out whether there is anything, and its body is not read. The only exception
 * is the log-in page.
 *
 * @param usesOrigin whether Weir forwards requests to the configured origin, so that a fault of the
 * origin matters to the doctor
 * @returns undefined if the request has to continue; a request if that one has to continue instead
 */
export type AdminEntry = (
  request: Request,
  usesOrigin: boolean,
) => Promise<Response | Request> | undefined;

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
  load?: (gate: Gate) => Promise<AdminHandler>,
): AdminEntry | undefined {
  const credentials = readCredentials(env, logMisconfigured);
  if (!credentials) return undefined;
  const gate = createGate(
    credentials,
    createAttempts(() => sharedLimiter(config, env)),
  );
  let handle: AdminHandler | undefined;

  async function answer(
    request: Request,
    path: string,
    usesOrigin: boolean,
  ): Promise<Response | Request> {
    if (load && gate.hasLogIn && isLogIn(request, path)) {
      handle ??= await load(gate);
      const response = await handle(
        request.method === "POST" ? request : withoutBody(request),
        undefined,
      );
      return response.status === 404 ? withoutCredentials(request, true, false) : response;
    }
    // If a credential cannot be checked, it is not valid.
    const operator = await gate.operatorOf(request).catch(() => undefined);
    if (!operator || operator === "refused") {
      return withoutCredentials(request, gate.hasLogIn, operator === "refused");
    }
    // A page of another site cannot send a request without a CSRF token, which is one of a program.
    const isProgram = operator.csrf === "" && operator.role === "admin";
    if (path === DOCTOR_PATH && request.method === "POST" && isProgram) {
      return withSecurityFields(await runDoctor(request, config, env, usesOrigin));
    }
    handle ??= await load?.(gate);
    // Without a handler, another entry of the app may answer.
    return handle ? handle(request, operator) : request;
  }

  return (request, usesOrigin) => {
    // Most requests end here, without the cost of parsing a URL.
    if (!request.url.includes(PATH)) return undefined;
    const path = URL.parse(request.url)?.pathname;
    if (path !== PATH && !path?.startsWith(`${PATH}/`)) return undefined;
    return answer(request, path, usesOrigin);
  };
}

/** Returns a copy of a request whose body stays unread, because the request may have to continue. */
function withoutBody({ url, method, headers }: Request): Request {
  return new Request(url, { method, headers });
}

function isLogIn({ method }: Request, path: string): boolean {
  const reads = method === "GET" || method === "HEAD";
  return path === LOG_IN ? reads || method === "POST" : reads && path.startsWith(`${LOG_IN}/`);
}

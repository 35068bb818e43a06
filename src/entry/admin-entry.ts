import { createAttempts, createGate, type Gate } from "../admin/gate.ts";
import {
  mayHaveCredential,
  type Operator,
  readCredentials,
  withoutCredentials,
  withSecurityFields,
} from "../admin/login.ts";
import type { Env } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { logMisconfigured } from "../gateway/log.ts";
import { placeOf } from "../request/canonical-request.ts";
import { decodeLeniently, decodeLevel } from "../request/path.ts";
import { DOCTOR_PATH, runDoctor } from "./doctor.ts";
import { sharedLimiter } from "./isolate.ts";

/** The first part of all paths of operators. */
const PATH = "/_weir";
/**
 * Matches every URL whose path an origin may read as a path below `PATH`. Escapes and characters outside ASCII may be
 * a spelling of `_weir`.
 */
const MAY_BE_BELOW = /^[^?#]*?(?:_weir|%|[^!-~])/i;
/** Matches URLs whose path is below `PATH` before dot segments are resolved. Some apps do not resolve them. */
const BEGINS_BELOW = /^https?:[/\\]+[^/\\?#]*[/\\]+_weir(?:[/\\?#]|$)/i;
/** The page with the form for a token, and the first part of the paths of its assets. */
const LOG_IN = `${PATH}/login`;

/** Answers a request of an operator, or a request to the log-in page. */
export type AdminHandler = (request: Request, operator: Operator | undefined) => Promise<Response>;

/**
 * Answers a request below `/_weir/` that has a valid credential, or that is for the log-in page. Every other request
 * continues like any request, with an unread body, so that nobody can find out whether Weir runs here. If any origin
 * could read such a path as a path below `/_weir/`, the request continues without Weir's credential.
 *
 * @param usesOrigin whether Weir forwards requests to the configured origin, so that a fault of the origin matters to
 * the doctor
 * @returns undefined if the given request must continue; a request if the returned request must continue instead
 */
export type AdminEntry = (
  request: Request,
  usesOrigin: boolean,
) => Promise<Response | Request> | undefined;

/**
 * Creates the entry for operators. Logs a faulty credential.
 *
 * @param load creates the handler of all paths except the doctor's. It is called at an operator's first request, so
 * that the Worker starts sooner. Without `load`, the entry serves only the doctor, so that bundles of Hono apps do
 * not contain the dashboard
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
    const operator = await operatorOf(request);
    if (!operator || operator === "refused") return continued(request, operator);
    // Without a CSRF token, the operator is a program. A page of another site cannot send a program's credential.
    const isProgram = operator.csrf === "";
    if (path === DOCTOR_PATH && request.method === "POST" && isProgram) {
      return withSecurityFields(await runDoctor(request, config, env, usesOrigin));
    }
    handle ??= await load?.(gate);
    return handle ? handle(request, operator) : continued(request, operator);
  }

  /** A credential that cannot be checked is not valid: the result is then undefined. */
  function operatorOf(request: Request): Promise<Operator | "refused" | undefined> {
    return gate.operatorOf(request).catch(() => undefined);
  }

  function continued(request: Request, operator: Operator | "refused" | undefined): Request {
    return withoutCredentials(request, gate.hasLogIn, operator !== undefined);
  }

  return (request, usesOrigin) => {
    const { url } = request;
    // Most requests end here, without the cost of parsing a URL.
    if (!MAY_BE_BELOW.test(url)) return undefined;
    const parsed = URL.parse(url);
    if (parsed && isBelow(parsed.pathname)) {
      return answer(withParsedUrl(request, parsed), parsed.pathname, usesOrigin);
    }
    // Weir answers paths below `PATH` in one spelling only, but an origin may accept other spellings.
    if (!mayHaveCredential(request.headers) || !isReadAsBelow(url)) return undefined;
    return operatorOf(request).then((operator) => continued(request, operator));
  };
}

function isBelow(path: string): boolean {
  return path === PATH || path.startsWith(`${PATH}/`);
}

/** Whether an origin may read the path of a URL as a path below `PATH`. */
function isReadAsBelow(url: string): boolean {
  if (BEGINS_BELOW.test(url)) return true;
  const place = placeOf(url, false);
  if (place) return [...place.variants, ...place.unstrippedVariants].some(isBelow);
  // Without this test, a request with a too long path would pass with its credential in shadow mode.
  return /_weir/i.test(decodeLeniently(decodeLevel(url)));
}

/**
 * Returns a request with the parsed URL, because the operators' app routes by the text of the URL. A client may have
 * sent `/x\..\_weir/`.
 */
function withParsedUrl(request: Request, { origin, pathname, href }: URL): Request {
  if (request.url.startsWith(origin + pathname)) return request;
  return request.bodyUsed ? withoutBody(request, href) : new Request(href, request);
}

/** Returns a copy of a request without its body, which stays unread, because the request may have to continue. */
function withoutBody({ url, method, headers }: Request, target = url): Request {
  return new Request(target, { method, headers });
}

function isLogIn({ method }: Request, path: string): boolean {
  const reads = method === "GET" || method === "HEAD";
  return path === LOG_IN ? reads || method === "POST" : reads && path.startsWith(`${LOG_IN}/`);
}

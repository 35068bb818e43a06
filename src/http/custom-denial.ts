import type { CustomContext, CustomResponse, Denial } from "../config/custom.ts";
import { isReserved } from "../config/response.ts";
import type { Config } from "../config/schema.ts";
import { isViolated, type Limited } from "../limiter/decision.ts";
import { isAccessHeader } from "./response-headers.ts";
import { limitedResponse, retrySecondsOf, setDenialHeaders } from "./responses.ts";

/**
 * The reason why a function in `custom.responses` has no usable response: it took too long, it threw
 * an error, its result is no response with an allowed status, its body failed, or its body is too
 * long.
 */
export type CustomResponseFailure = "timeout" | "threw" | "invalid" | "body-failed" | "too-long";

/** Reports that a function failed. The error is not passed, because it may contain a secret. */
type OnCustomResponseFailure = (name: string, cause: CustomResponseFailure) => void;

/** The maximum length of a body, in bytes. The whole body is in memory before it is sent. */
const MAX_BODY = 1024 * 1024;
/**
 * The maximum number of chunks of a body. While a stream in JavaScript supplies one chunk after
 * another, timers do not run, so the deadline cannot end such a body.
 */
const MAX_CHUNKS = 4096;

/** Answers a denied request, with the response of a function if its rule names one. Never rejects. */
export function denialResponse(
  request: Request,
  limited: Limited,
  context: CustomContext,
  config: DenialConfig,
  onFailure: OnCustomResponseFailure,
): Response | Promise<Response> {
  const { response } = limited.deniedBy.appliedRule.rule;
  const name = response && "custom" in response ? response.custom : undefined;
  const create = name === undefined ? undefined : config.custom?.responses?.get(name);
  if (name === undefined || !create) return limitedResponse(request, limited, config.headers);
  return customDenial(request, limited, create, context, config, (cause) => onFailure(name, cause));
}

type DenialConfig = Pick<Config, "headers" | "custom" | "timeoutMs">;

/**
 * Answers a denied request with the response of a function, or with the default response if the
 * function fails.
 *
 * The body is read before the response begins. So a body that fails or stalls cannot spoil a response
 * that the client has begun to receive.
 */
async function customDenial(
  request: Request,
  limited: Limited,
  create: CustomResponse,
  context: CustomContext,
  { headers: style, timeoutMs }: DenialConfig,
  onFailure: (cause: CustomResponseFailure) => void,
): Promise<Response> {
  const seconds = retrySecondsOf(limited);
  const deadline = new Deadline(timeoutMs);
  try {
    const result: unknown = await deadline.race(
      create(denialOf(limited, seconds), { ...context, request }),
    );
    if (!isUsable(result)) throw new Failure("invalid");
    const body = await bodyOf(result, request.method === "HEAD", deadline);
    const response = new Response(body, result);
    for (const header of [...response.headers.keys()]) {
      if (isReserved(header) && !isAccessHeader(header)) response.headers.delete(header);
    }
    setDenialHeaders(request, response.headers, limited.quotas, seconds, style);
    return response;
  } catch (error) {
    onFailure(error instanceof Failure ? error.failure : "threw");
    return limitedResponse(request, limited, style, seconds);
  } finally {
    deadline.clear();
  }
}

/**
 * Returns the argument of the function. Its quotas are copies, because the function may change
 * them.
 */
function denialOf({ deniedBy, quotas, retryAfterMs }: Limited, seconds: number): Denial {
  const copies = quotas.map((quota) => ({ ...quota }));
  return {
    rule: deniedBy.appliedRule.rule.name,
    retryAfterMs,
    retryAfterSeconds: seconds,
    violated: copies.filter(isViolated),
    quotas: copies,
  };
}

/**
 * Whether a value is a response that can deny a request. A framework may have a class of its own for
 * responses, so the class is not checked.
 *
 * JSON-RPC reports errors with status 200. Other statuses below 400 would promise a success, and with
 * a redirect, Retry-After would delay the redirect instead of the next request.
 */
function isUsable(value: unknown): value is Response {
  if (typeof value !== "object" || value === null || !("headers" in value)) return false;
  const { status, body, bodyUsed, webSocket } = value as Response;
  const denies = status === 200 || (status >= 400 && status <= 599);
  return denies && !bodyUsed && !body?.locked && !webSocket;
}

/** @throws {Failure} if the body cannot be read in time, or is too long */
async function bodyOf(
  { body }: Response,
  isHead: boolean,
  deadline: Deadline,
): Promise<Blob | null> {
  if (!body) return null;
  const reader = body.getReader();
  try {
    if (isHead) return null;
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const { done, value } = await deadline.race(reader.read());
      if (done) return new Blob(chunks);
      if (!(value instanceof Uint8Array)) throw new Failure("body-failed");
      length += value.byteLength;
      if (length > MAX_BODY || chunks.length >= MAX_CHUNKS) throw new Failure("too-long");
      chunks.push(value);
    }
  } catch (error) {
    throw error instanceof Failure ? error : new Failure("body-failed");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The failure of a function. */
class Failure extends Error {
  readonly failure: CustomResponseFailure;

  constructor(failure: CustomResponseFailure) {
    super(failure);
    this.failure = failure;
  }
}

/** One deadline for several steps. */
class Deadline {
  readonly #reached: Promise<never>;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeoutMs: number) {
    // `weir explain` loads this file in Node 20, which has no Promise.withResolvers.
    this.#reached = new Promise((_, reject) => {
      this.#timer = setTimeout(() => reject(new Failure("timeout")), timeoutMs);
    });
    // Without a handler, a deadline that nobody awaits would be an unhandled rejection.
    this.#reached.catch(() => {});
  }

  /** Waits for a value until the deadline. @throws {Failure} at the deadline */
  race<T>(value: T | PromiseLike<T>): Promise<T> {
    return Promise.race([value, this.#reached]);
  }

  clear(): void {
    clearTimeout(this.#timer as ReturnType<typeof setTimeout>);
  }
}

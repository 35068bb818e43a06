import type { CustomContext, CustomResponse, Denial } from "../config/custom.ts";
import { isReserved } from "../config/response.ts";
import type { Config } from "../config/schema.ts";
import { EXCEEDS_LIMIT, isViolated, type Limited } from "../limiter/decision.ts";
import { withTimeout } from "../request/timeout.ts";
import { isAccessHeader, toSeconds } from "./response-headers.ts";
import { limitedResponse, retryMsOf, setDenialHeaders } from "./responses.ts";

/**
 * The reason why a function in `custom.responses` has no usable response: it took too long, it threw an error, its
 * result is no response with an allowed status, its body failed, or its body is too long.
 */
export type CustomResponseFailure = "timeout" | "threw" | "invalid" | "body-failed" | "too-long";

/** Reports that a function failed. Does not pass the error, because it may contain a secret. */
type OnCustomResponseFailure = (name: string, cause: CustomResponseFailure) => void;

/** The maximum length of a body, in bytes, because the whole body is in memory before it is sent. */
const MAX_BODY = 1024 * 1024;
/**
 * The maximum number of chunks of a body. While a stream in JavaScript supplies chunks without a pause, no timer
 * runs, so the deadline cannot end the body.
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
 * Answers a denied request with the response of a function, or with the default response if the function fails.
 *
 * Reads the body before the response begins. Otherwise a body that fails or stalls could spoil a response that the
 * client already receives.
 */
async function customDenial(
  request: Request,
  limited: Limited,
  create: CustomResponse,
  context: CustomContext,
  { headers: style, timeoutMs }: DenialConfig,
  onFailure: (cause: CustomResponseFailure) => void,
): Promise<Response> {
  const retryMs = retryMsOf(limited);
  const read = readResponse(
    () => create(denialOf(limited, retryMs), { ...context, request }),
    request.method === "HEAD",
  );
  const response = await withTimeout(read, timeoutMs, () => "timeout" as const);
  if (typeof response === "string") {
    onFailure(response);
    return limitedResponse(request, limited, style, retryMs);
  }
  for (const header of [...response.headers.keys()]) {
    if (isReserved(header) && !isAccessHeader(header)) response.headers.delete(header);
  }
  setDenialHeaders(request, response.headers, limited.quotas, retryMs, style);
  return response;
}

/** Returns the response of a function with its whole body, or the reason why there is no response. Never rejects. */
async function readResponse(
  create: () => unknown,
  isHead: boolean,
): Promise<Response | CustomResponseFailure> {
  try {
    const response: unknown = await create();
    if (!isUsable(response)) return "invalid";
    const body = response.body && (await readBody(response.body, isHead));
    return typeof body === "string" ? body : new Response(body, response);
  } catch {
    return "threw";
  }
}

/** Returns the argument of the function. The function may change the quotas, so they are copies. */
function denialOf({ deniedBy, quotas, retryAfterMs }: Limited, retryMs?: number): Denial {
  const copies = quotas.map((quota) => ({ ...quota }));
  const time =
    retryAfterMs === undefined || retryMs === undefined
      ? { reason: EXCEEDS_LIMIT }
      : { retryAfterMs, retryAfterSeconds: toSeconds(retryMs) };
  return {
    rule: deniedBy.appliedRule.rule.name,
    ...time,
    violated: copies.filter(isViolated),
    quotas: copies,
  };
}

/**
 * Whether a value is a response that can deny a request. The value's class is not checked, because a framework may
 * define another class for responses.
 *
 * The status 200 is allowed for JSON-RPC, which reports errors with it. Other statuses below 400 would promise a
 * success. In a redirect, Retry-After would also delay the redirect instead of the next request.
 */
function isUsable(value: unknown): value is Response {
  if (typeof value !== "object" || value === null || !("headers" in value)) return false;
  const { status, body, bodyUsed, webSocket } = value as Response;
  const denies = status === 200 || (status >= 400 && status <= 599);
  return denies && !bodyUsed && !body?.locked && !webSocket;
}

async function readBody(
  body: ReadableStream,
  isHead: boolean,
): Promise<Blob | null | CustomResponseFailure> {
  const reader = body.getReader();
  try {
    if (isHead) return null;
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return new Blob(chunks);
      if (!(value instanceof Uint8Array)) return "body-failed";
      length += value.byteLength;
      if (length > MAX_BODY || chunks.length >= MAX_CHUNKS) return "too-long";
      chunks.push(value);
    }
  } catch {
    return "body-failed";
  } finally {
    reader.cancel().catch(() => {});
  }
}

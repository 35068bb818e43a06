import type { Config } from "../config/schema.ts";
import type { Quota } from "../limiter/decision.ts";
import { exposeFields } from "./cors.ts";
import { appendQuotaFields } from "./rate-limit-headers.ts";

/**
 * Returns the response with the RateLimit fields. If there is nothing to add, returns the same
 * object.
 */
export function withQuotaFields(
  request: Request,
  response: Response,
  quotas: readonly Quota[],
  style: Config["headers"],
): Response {
  if (quotas.length === 0 || style === "none") return response;
  // `new Response` throws for a status above 599 or below 200, which an origin may send, and for the
  // status 0 of `Response.error()`. So Weir adds no fields to such a response, except to WebSockets.
  const { status, webSocket } = response;
  if (status > 599 || (status < 200 && !webSocket)) return response;
  // The headers of a fetched response are immutable. The headers of a copy with the same body can
  // be changed.
  const copy = new Response(response.body, response);
  exposeFields(request, copy.headers, appendQuotaFields(copy.headers, quotas, style));
  return copy;
}

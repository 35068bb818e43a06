import type { Config } from "../config/schema.ts";
import type { Quota } from "../limiter/decision.ts";
import { withAddedFields } from "./added-fields.ts";
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
  return withAddedFields(request, response, (headers) => appendQuotaFields(headers, quotas, style));
}

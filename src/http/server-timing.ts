import type { Decision } from "../limiter/decision.ts";
import { withAddedFields } from "./added-fields.ts";

const FIELD = "Server-Timing";

/**
 * Returns the response with one more metric in `Server-Timing`: how long the decision waited, and
 * whether this isolate decided from its memory or called the store.
 *
 * @param tookMs the duration by the Worker's clock, which advances only during I/O
 */
export function withServerTiming(
  request: Request,
  response: Response,
  decision: Decision,
  tookMs: number,
): Response {
  const isFromMemory = decision.outcome !== "undecided" && decision.fromMemory;
  const metric = `weir;dur=${tookMs};desc="${isFromMemory ? "memory" : "store"}"`;
  return withAddedFields(request, response, (headers) => {
    headers.append(FIELD, metric);
    return [FIELD];
  });
}

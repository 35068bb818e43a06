// weir: for a Worker of one's own. What is not here is not kept from one release to the next.

export type { Quota } from "./limiter/decision.ts";
export { type RateLimitOptions, rateLimit } from "./middleware.ts";
export { RateLimitError } from "./rate-limit-error.ts";
export type { CustomKey, CustomKeys } from "./request/custom-key.ts";
export type { LimitKey, LimitKeyValue } from "./request/limit-key.ts";
export {
  type CheckOptions,
  type ClientOptions,
  type LimitDenied,
  type LimitGranted,
  type LimitOptions,
  type LimitResult,
  type LimitUndecided,
  WeirService,
} from "./service.ts";
export { CounterObject } from "./stores/durable-object/counter-object.ts";
export { type WeirOptions, weir } from "./weir.ts";

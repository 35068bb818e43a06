// This module is the package `edge-weir`, for Workers. Only its exports stay stable between releases.

export { ControlObject } from "./control/control-object.ts";
export {
  type RateLimitMiddleware,
  type RateLimitOptions,
  type RateLimitVariables,
  rateLimit,
} from "./entry/middleware.ts";
export { type Next, type WeirHandler, weir } from "./entry/weir.ts";
export type { Reserve } from "./limiter/counters.ts";
export type { Quota } from "./limiter/decision.ts";
export type { ClientEffect, Override, RuleEffect } from "./overrides/override.ts";
export type { LimitKey, LimitKeyValue } from "./request/limit-key.ts";
export type { CheckOptions, ClientOptions, LimitOptions } from "./service/options.ts";
export type { OverrideOptions, RemoveOverrideOptions } from "./service/overrides.ts";
export type {
  LimitDenied,
  LimitGranted,
  LimitResult,
  LimitUndecided,
} from "./service/result.ts";
export { RateLimitError } from "./service/result.ts";
export type { SettleOptions } from "./service/rule.ts";
export { WeirService } from "./service/service.ts";
export { CounterObject } from "./stores/durable-object/counter-object.ts";

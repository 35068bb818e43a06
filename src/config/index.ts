// The entry point edge-weir/config, which a weir.config.ts imports. It loads in Node and in workerd.

export type { BanInput, EscalatingBanInput } from "./ban.ts";
export type {
  ComputedCostInput,
  CostInput,
  CountInput,
  CountStatusInput,
  RequestCostInput,
  ResponseCostInput,
} from "./cost.ts";
export type {
  CustomContext,
  CustomCost,
  CustomCosts,
  CustomCostValue,
  CustomEvents,
  CustomInput,
  CustomKey,
  CustomKeys,
  CustomKeyValue,
  CustomLimit,
  CustomLimits,
  CustomLimitValue,
  CustomResponse,
  CustomResponses,
  CustomSettle,
  CustomSettles,
  CustomSettleValue,
  Denial,
  DenialContext,
  LimitClient,
  PartialCost,
  Quota,
  QuotaEvent,
  SettleContext,
  WorkerBindings,
} from "./custom.ts";
export { ConfigError, defineConfig } from "./define.ts";
export type { DurationInput } from "./duration.ts";
export type { Fault, FaultCode } from "./faults.ts";
export type { JwtInput } from "./jwt.ts";
export type { KeyInput } from "./key.ts";
export type { LimitSourceInput } from "./limit-source.ts";
export type {
  BotCategory,
  ConditionsInput,
  MatchInput,
  ValueInput,
  ValuePattern,
} from "./match.ts";
export type { OriginInput, OriginsInput } from "./origin.ts";
export type { CustomResponseInput, ResponseInput } from "./response.ts";
export type { Mode, RuleInput } from "./rule.ts";
export { defineRules, type RuleFilesInput, type RulesInput } from "./rules.ts";
export type { Config, ConfigInput, NativeLimiterInput, RuleNameOf } from "./schema.ts";
export type { ExemptInput, ExpectedValue, TiersInput } from "./tiers.ts";
export type { LimitFields, LimitInput, WindowInput } from "./window.ts";

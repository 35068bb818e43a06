// The entry point edge-weir/config, which a weir.config.ts imports. It loads in Node and in workerd.

export type {
  ComputedCostInput,
  CostInput,
  RequestCostInput,
  ResponseCostInput,
} from "./cost.ts";
export type {
  CustomContext,
  CustomCost,
  CustomCosts,
  CustomCostValue,
  CustomInput,
  CustomKey,
  CustomKeys,
  CustomKeyValue,
  CustomResponse,
  CustomResponses,
  CustomSettle,
  CustomSettles,
  CustomSettleValue,
  Denial,
  DenialContext,
  PartialCost,
  Quota,
  SettleContext,
  WorkerBindings,
} from "./custom.ts";
export { ConfigError, defineConfig } from "./define.ts";
export type { Fault } from "./faults.ts";
export type { JwtInput } from "./jwt.ts";
export type { KeyInput } from "./key.ts";
export type {
  BanInput,
  CountInput,
  CountStatusInput,
  EscalatingBanInput,
  Mode,
  NativeLimiterInput,
} from "./limit-fields.ts";
export type {
  BotCategory,
  ConditionsInput,
  MatchInput,
  ValueInput,
  ValuePattern,
} from "./match.ts";
export type { OriginInput, OriginsInput } from "./origin.ts";
export type { CustomResponseInput, ResponseInput } from "./response.ts";
export type { RuleInput } from "./rule-input.ts";
export { defineRules, type RuleFilesInput, type RulesInput } from "./rules.ts";
export type { Config, ConfigInput, RuleNameOf } from "./schema.ts";
export type { ExemptInput, ExpectedValue, TiersInput } from "./tiers.ts";
export type { DurationInput, LimitFields, LimitInput, WindowInput } from "./window.ts";

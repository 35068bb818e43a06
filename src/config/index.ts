// The entry point edge-weir/config, which a weir.config.ts imports. It loads in Node and in workerd.
export type { BanInput, EscalatingBanInput } from "./ban.ts";
export type { CountInput, CountStatusInput } from "./charge.ts";
export type { BotCategory, ConditionsInput } from "./conditions.ts";
export type {
  ComputedCostInput,
  CostInput,
  RequestCostInput,
  ResponseCostInput,
} from "./cost.ts";
export type {
  CustomCosts,
  CustomInput,
  CustomKeys,
  CustomResponses,
  CustomSettles,
} from "./custom.ts";
export type {
  CustomContext,
  CustomCost,
  CustomCostValue,
  CustomKey,
  CustomKeyValue,
  CustomResponse,
  CustomSettle,
  CustomSettleValue,
  Denial,
  DenialContext,
  PartialCost,
  SettleContext,
  WorkerBindings,
} from "./custom-functions.ts";
export { ConfigError, defineConfig } from "./define.ts";
export type { DurationInput } from "./duration.ts";
export type { ExemptInput, ExpectedValue } from "./exempt.ts";
export type { Fault } from "./faults.ts";
export type { JwtInput } from "./jwt.ts";
export type { KeyInput } from "./key-expression.ts";
export type { LimitFields, LimitInput } from "./limits.ts";
export type { MatchInput } from "./match.ts";
export type { NativeLimiterInput } from "./native-limiter.ts";
export type { OriginInput, OriginsInput } from "./origin.ts";
export type { Mode } from "./outcome.ts";
export type { Quota } from "./quota.ts";
export type { CustomResponseInput, ResponseInput } from "./response.ts";
export type { RuleInput } from "./rule-input.ts";
export { defineRules, type RuleFilesInput, type RulesInput } from "./rules.ts";
export type { Config, ConfigInput, RuleNameOf } from "./schema.ts";
export type { TiersInput } from "./tiers.ts";
export type { ValueInput, ValuePattern } from "./value-condition.ts";
export type { WindowInput } from "./window-length.ts";

// The entry point edge-weir/config, which a weir.config.ts imports. It loads in Node and in workerd.
export type { CostInput, CountInput } from "./charge.ts";
export type {
  CustomContext,
  CustomInput,
  CustomKey,
  CustomKeys,
  CustomKeyValue,
  WorkerBindings,
} from "./custom.ts";
export { ConfigError, defineConfig } from "./define.ts";
export type { DurationInput } from "./duration.ts";
export type { ExemptInput, ExpectedValue } from "./exempt.ts";
export type { Fault } from "./faults.ts";
export type { JwtInput } from "./jwt.ts";
export type { KeyInput } from "./key-expression.ts";
export type { LimitFields, LimitInput } from "./limits.ts";
export type { ConditionsInput, MatchInput } from "./match.ts";
export type { NativeLimiterInput } from "./native-limiter.ts";
export type { OriginInput } from "./origin.ts";
export type { ResponseInput } from "./response.ts";
export type { RuleInput } from "./rule-input.ts";
export type { Config, ConfigInput, RuleNameOf } from "./schema.ts";
export type { TiersInput } from "./tiers.ts";

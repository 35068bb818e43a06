// weir/config: what a weir.config.ts imports. It loads in Node as well as in workerd.
export { ConfigError, defineConfig } from "./define.ts";
export type { Fault } from "./faults.ts";
export type { Config, ConfigInput } from "./schema.ts";

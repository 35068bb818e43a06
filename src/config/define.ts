import * as v from "valibot";
import { type Fault, faultsOf } from "./faults.ts";
import { type Config, type ConfigInput, ConfigSchema } from "./schema.ts";

/** The error that `defineConfig` throws. Its message lists all faults, one on a line. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** All faults, at most one for each field. */
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    const count = faults.length === 1 ? "1 fault" : `${faults.length} faults`;
    const lines = faults.map(({ path, message }) => `  ${path || "the configuration"}: ${message}`);
    super(`Weir's configuration has ${count}:\n${lines.join("\n")}`);
    this.faults = faults;
  }
}

/**
 * Marks a configuration that `defineConfig` returned. The property's value is the argument of
 * `defineConfig`. Other copies of Weir use the same symbol, so the command line recognises a
 * configuration that the user's copy of Weir returned.
 */
const DEFINED = Symbol.for("weir.config");

/**
 * Checks a configuration and fills in its defaults. All fields: docs/configuration.md.
 *
 * @example
 * export default defineConfig({
 *   rules: [{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }],
 * });
 *
 * @typeParam RuleName the names of the rules. The compiler derives them from `input`, so that
 * `rateLimit` and `WeirService` accept no other name.
 * @throws {ConfigError} if the configuration has faults. For each fault, the error lists the path
 * of the field, the given value and the allowed values.
 */
export function defineConfig<const RuleName extends string>(
  input: ConfigInput<RuleName>,
): Config<RuleName> {
  const result = v.safeParse(ConfigSchema, input);
  if (!result.success) throw new ConfigError(faultsOf(result.issues));
  const config: Config = Object.defineProperty(result.output, DEFINED, { value: input });
  // The schema returns the names unchanged, but types them as texts.
  return config as Config<RuleName>;
}

/** Whether `defineConfig` returned this value. */
export function isConfig(value: unknown): value is Config {
  return typeof value === "object" && value !== null && DEFINED in value;
}

/**
 * Returns the argument of the call of `defineConfig` that returned this configuration. `weir check`
 * needs it for warnings that depend on the notation: a window of `60000` may be a mistake for 60 seconds,
 * whereas `"1000m"` is not.
 */
export function inputOf(config: Config): unknown {
  return (config as { readonly [DEFINED]?: unknown })[DEFINED];
}

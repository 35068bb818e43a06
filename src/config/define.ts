import * as v from "valibot";
import { type Fault, faultsOf } from "./faults.ts";
import { type Config, type ConfigInput, ConfigSchema } from "./schema.ts";

/** Thrown for a configuration with faults. Its message names them all, one on a line. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Every fault, at most one for a place. */
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    const count = faults.length === 1 ? "1 fault" : `${faults.length} faults`;
    const lines = faults.map(({ path, message }) => `  ${path || "the configuration"}: ${message}`);
    super(`Weir's configuration has ${count}:\n${lines.join("\n")}`);
    this.faults = faults;
  }
}

/** Marks what `defineConfig` made, this one's or that of another copy of Weir. */
const DEFINED = Symbol.for("weir.config");

/**
 * Checks a configuration and fills in its defaults.
 *
 * @example
 * export default defineConfig({
 *   rules: [{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }],
 * });
 *
 * @throws {ConfigError} with every fault that it has: where, what was given, what is allowed
 */
export function defineConfig<const RuleName extends string>(
  input: ConfigInput<RuleName>,
): Config<RuleName> {
  const result = v.safeParse(ConfigSchema, input);
  if (!result.success) throw new ConfigError(faultsOf(result.issues));
  const config: Config = Object.defineProperty(result.output, DEFINED, { value: true });
  // The schema returns the names unchanged, but types them as texts.
  return config as Config<RuleName>;
}

/** Whether a value came out of `defineConfig`. */
export function isConfig(value: unknown): value is Config {
  return typeof value === "object" && value !== null && DEFINED in value;
}

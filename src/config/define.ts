import * as v from "valibot";
import { type Fault, faultsOf } from "./faults.ts";
import { type Config, type ConfigInput, ConfigSchema } from "./schema.ts";

/** Thrown for a configuration with faults. Its message names them all, one on a line. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Every fault, in the order in which they stand in the configuration. */
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    const count = faults.length === 1 ? "1 fault" : `${faults.length} faults`;
    const lines = faults.map(({ path, message }) => `  ${path || "the configuration"}: ${message}`);
    super(`Weir's configuration has ${count}:\n${lines.join("\n")}`);
    this.faults = faults;
  }
}

/** The configurations that `defineConfig` made, so that others can be told from them. */
const defined = new WeakSet<object>();

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
export function defineConfig(input: ConfigInput): Config {
  const result = v.safeParse(ConfigSchema, input);
  if (!result.success) throw new ConfigError(faultsOf(result.issues));
  defined.add(result.output);
  return result.output;
}

/** Whether a value came out of `defineConfig`. */
export function isConfig(value: unknown): value is Config {
  return typeof value === "object" && value !== null && defined.has(value);
}

import * as v from "valibot";
import { explainedFaultsOf } from "./explain/explained-faults.ts";
import { type Fault, MAX_FAULTS, type NodeGlobals, shortFaultsOf } from "./faults.ts";
import { isRecord } from "./fields.ts";
import { type Config, type ConfigInput, ConfigSchema } from "./schema.ts";

const MORE = "\nRun npx weir check: it prints what is allowed, and the cures.";

/** The error that `defineConfig` throws. Its message lists all faults, one on a line. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** The faults, at most one for each field. After 500 faults, one more element has the number of further faults. */
  readonly faults: readonly Fault[];

  /** @param advice a text at the end of the message */
  constructor(faults: readonly Fault[], advice = "") {
    const isCut = faults.length > MAX_FAULTS;
    const number = isCut ? `more than ${MAX_FAULTS}` : faults.length;
    const count = faults.length === 1 ? "1 fault" : `${number} faults`;
    const lines = faults.map(({ path, message }) => `  ${path || "the configuration"}: ${message}`);
    super(`Weir's configuration has ${count}:\n${lines.join("\n")}${advice}`);
    this.faults = faults;
  }
}

/**
 * Marks a configuration that `defineConfig` returned. The property's value is the argument of `defineConfig`. All
 * copies of Weir use the same symbol, so the command line recognises a configuration from the user's copy of Weir.
 */
const DEFINED = Symbol.for("weir.config");

/**
 * Checks a configuration and fills in its defaults. docs/configuration.md describes all fields. A configuration that
 * this function has returned is returned unchanged.
 *
 * @example
 * export default defineConfig({
 *   rules: [{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }],
 * });
 *
 * @typeParam RuleName the names of the rules. The compiler derives them from `input`, so that `rateLimit` and
 * `WeirService` accept no other name. Without rules, they accept no name.
 * @throws {ConfigError} if the configuration has faults. For each fault, the error lists the path of the field, a code,
 * the given value, the cure if Weir knows one, and the allowed values. In a Worker that `wrangler deploy` has
 * bundled, the error lists only the paths and the codes, and `weir check` prints the rest. In `wrangler dev`, the
 * function throws no error, and the Worker answers every request with 503 and the faults.
 */
export function defineConfig<const RuleName extends string = never>(
  input: ConfigInput<RuleName>,
): Config<RuleName> {
  const given: unknown = input;
  if (isConfig(given)) return given as Config<RuleName>;
  const config = withInput(check(input), input);
  // The schema returns the names unchanged, but with the type of texts.
  return config as Config<RuleName>;
}

/** @throws {ConfigError} */
function check(input: unknown): Config {
  const result = v.safeParse(ConfigSchema, input);
  if (result.success) return result.output;
  // `wrangler deploy` replaces this expression by a constant, so the bundler removes all code that explains faults.
  // In `wrangler dev`, in tests and in Node, the faults are explained. The whole expression must stand here, because
  // esbuild does not evaluate the constants of a module.
  const error =
    (globalThis as NodeGlobals).process?.env?.NODE_ENV === "production"
      ? new ConfigError(shortFaultsOf(result.issues), MORE)
      : new ConfigError(explainedFaultsOf(result.issues, input));
  return refuse(withInput(error, input));
}

/**
 * Throws the error. In `wrangler dev`, returns a configuration in place of the faulty one, so that the Worker starts
 * and shows the faults in its responses.
 */
function refuse(error: ConfigError): Config {
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV === "development" && isLocalWorkerd()) {
    return createFaultyConfig(error.faults);
  }
  throw error;
}

/** The configurations that {@link toConfig} has checked, by their plain objects. */
const checked = new WeakMap<object, Config>();

/**
 * Returns a checked configuration: the given configuration if `defineConfig` returned it, or the result of
 * `defineConfig` for a plain object. Returns the same configuration for the same object, so that all users of the
 * object share one limiter.
 *
 * @throws {ConfigError} if a plain object has faults
 */
export function toConfig<const RuleName extends string>(
  given: Config<RuleName> | ConfigInput<RuleName>,
): Config<RuleName> {
  const existing = isConfig(given) ? given : isRecord(given) ? checked.get(given) : undefined;
  if (existing) return existing as Config<RuleName>;
  const config = defineConfig(given as ConfigInput<RuleName>);
  // In `wrangler dev`, `defineConfig` also accepts a value that is not an object, and shows the fault.
  if (isRecord(given)) checked.set(given, config);
  return config;
}

function withInput<T extends object>(target: T, input: unknown): T {
  return Object.defineProperty(target, DEFINED, { value: input });
}

/** Whether `defineConfig` returned this value. */
export function isConfig(value: unknown): value is Config {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.hasOwn(value, "rules") &&
    Object.hasOwn(value, DEFINED)
  );
}

/**
 * Returns the argument of the call of `defineConfig` that returned this configuration or threw this error. Some
 * warnings of `weir check` depend on the notation: a window of `60000` may be a mistake for 60 seconds, but `"1000m"`
 * is not.
 */
export function inputOf(result: Config | Error): unknown {
  return (result as { readonly [DEFINED]?: unknown })[DEFINED];
}

/**
 * Returns the explained faults of a configuration; an empty list without faults. `weir check` calls this function,
 * because `defineConfig` throws short faults if a build server has set `NODE_ENV` to `"production"`.
 */
export function faultsIn(input: unknown): readonly Fault[] {
  const { issues } = v.safeParse(ConfigSchema, input);
  return issues ? explainedFaultsOf(issues, input) : [];
}

/** All copies of Weir use the same symbol, so that a copy finds the faults of a configuration from another copy. */
const FAULTS = Symbol.for("weir.faults");

/**
 * Whether this code runs in a local workerd, which `wrangler dev` has started.
 *
 * A deploy with the environment variable `NODE_ENV=development` also makes a bundle for development. In that bundle,
 * `defineConfig` must throw, so that Cloudflare refuses the deploy: Cloudflare starts a Worker before it accepts the
 * deploy. A starting Worker has no bindings, no request and no clock, in `wrangler dev` and at Cloudflare. But in
 * `wrangler dev`, the names of its modules are URLs of files.
 */
export function isLocalWorkerd(): boolean {
  // Node 20 has no navigator.
  const isWorkerd =
    typeof navigator !== "undefined" && navigator.userAgent === "Cloudflare-Workers";
  return isWorkerd && new Error().stack?.includes("file://") === true;
}

/**
 * Creates a configuration without rules in place of a faulty one, while `wrangler dev` runs. Every handler answers
 * requests with 503 and the faults. Every call of a service throws an error with the faults.
 */
export function createFaultyConfig(faults: readonly Fault[]): Config {
  return Object.defineProperty(v.parse(ConfigSchema, { rules: [] }), FAULTS, { value: faults });
}

/** Returns the faults of a configuration that {@link createFaultyConfig} created. */
export function faultsOfFaultyConfig(config: Config): readonly Fault[] | undefined {
  return (config as { readonly [FAULTS]?: readonly Fault[] })[FAULTS];
}

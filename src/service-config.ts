import { ConfigError, isConfig, toConfig } from "./config/define.ts";
import { faultsOfFaultyConfig } from "./config/faulty-config.ts";
import type { NodeGlobals } from "./config/node-globals.ts";
import type { Config, ConfigInput } from "./config/schema.ts";

/** The result of checking a plain configuration. */
type Result = Config | ConfigError;

const resultsByObject = new WeakMap<object, Result>();

/**
 * The results for each class. The keys are the classes, and the content of the plain configurations.
 * Each call to a service has a new instance, which may create a new object with the same content in
 * its field `config`. Without this map, each call would have counters of its own with
 * `store: "memory"`.
 */
const resultsByContent = new WeakMap<object, Map<string, Result>>();

/** The maximum number of results for each class. The oldest result is dropped. */
const MAX_RESULTS = 8;

interface Service {
  readonly config: Config | ConfigInput;
}

/**
 * Returns the checked configuration of a service. A plain object is checked only at the first call
 * that uses it, and objects with the same content are checked once for each class. Another instance
 * of the class may have another configuration.
 *
 * @throws {ConfigError} if the configuration has faults, at every call
 */
export function configOfService(service: Service): Config {
  const config = checkedConfigOf(service);
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV === "development") {
    const faults = faultsOfFaultyConfig(config);
    if (faults) throw new ConfigError(faults);
  }
  return config;
}

/** @throws {ConfigError} */
function checkedConfigOf(service: Service): Config {
  const { config } = service;
  if (isConfig(config)) return config;
  const isObject = typeof config === "object" && config !== null;
  const existing = isObject ? resultsByObject.get(config) : undefined;
  const result = existing ?? resultOfContent(service.constructor, config);
  if (isObject) resultsByObject.set(config, result);
  if (result instanceof ConfigError) throw result;
  return result;
}

function resultOfContent(serviceClass: object, config: ConfigInput): Result {
  const content = contentOf(config);
  if (content === undefined) return tryConfig(config);
  const results = resultsByContent.get(serviceClass) ?? new Map<string, Result>();
  resultsByContent.set(serviceClass, results);
  const result = results.get(content) ?? tryConfig(config);
  results.set(content, result);
  const [oldest] = results.keys();
  if (results.size > MAX_RESULTS && oldest !== undefined) results.delete(oldest);
  return result;
}

/**
 * Returns the content of a plain configuration as JSON; undefined if it has no JSON. All functions are
 * equal, because a service calls none of the functions in `custom`.
 */
function contentOf(config: ConfigInput): string | undefined {
  try {
    return JSON.stringify(config, (_, value: unknown) =>
      typeof value === "function" ? { function: true } : value,
    );
  } catch {
    return undefined;
  }
}

function tryConfig(config: ConfigInput): Result {
  try {
    return toConfig(config);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

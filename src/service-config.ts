import { ConfigError, isConfig, toConfig } from "./config/define.ts";
import { faultsOfFaultyConfig, type NodeGlobals } from "./config/faulty-config.ts";
import type { Config, ConfigInput } from "./config/schema.ts";

/** A subclass of `WeirService`. */
type ServiceClass = object;

/**
 * The results of checking the plain configurations of service classes. Each call to a service has a
 * new instance, which may create a new object in its field `config`. So the key is the class.
 */
const checkedConfigs = new WeakMap<ServiceClass, Config | ConfigError>();

interface Service {
  readonly config: Config | ConfigInput;
}

/**
 * Returns the checked configuration of a service. A plain object is checked only at the first call
 * to its class.
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
  const existing = checkedConfigs.get(service.constructor);
  const result = existing ?? tryConfig(config);
  if (!existing) checkedConfigs.set(service.constructor, result);
  if (result instanceof ConfigError) throw result;
  return result;
}

function tryConfig(config: Config | ConfigInput): Config | ConfigError {
  try {
    return toConfig(config);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

import { ConfigError, isConfig, toConfig } from "./config/define.ts";
import type { Config, ConfigInput } from "./config/schema.ts";

/** A subclass of `WeirService`. */
type ServiceClass = object;

/**
 * The results of checking the plain configurations of service classes. Each call to a service has a
 * new instance, which may create a new object in its field `config`. So the key is the class.
 */
const checkedConfigs = new WeakMap<ServiceClass, Config | ConfigError>();

/**
 * Returns the checked configuration of a service. A plain object is checked only at the first call
 * to its class.
 *
 * @throws {ConfigError} if a plain object has faults, at every call
 */
export function configOfService(service: { readonly config: Config | ConfigInput }): Config {
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

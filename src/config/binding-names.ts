import type { Config } from "./schema.ts";

/** The name under which wrangler.toml binds the Durable Object namespace of `CounterObject`. */
export const COUNTERS_BINDING = "COUNTERS";
/**
 * The name under which wrangler.toml binds the Durable Object namespace of `ControlObject`. Without
 * this binding, there are no statistics, no overrides and no dashboard.
 */
export const CONTROL_BINDING = "WEIR_CONTROL";
/** The name under which wrangler.toml may bind a dataset of Analytics Engine for the statistics. */
export const ANALYTICS_BINDING = "WEIR_ANALYTICS";
/**
 * The name of the var that replaces `prefix` of the configuration, so that two environments with one
 * configuration can use one database.
 */
export const PREFIX_VAR = "WEIR_PREFIX";

/** The name of the var that sets the mode of all rules of a deployment. */
export const MODE_VAR = "WEIR_MODE";

/**
 * The name of the secret with which Weir hashes identities. With it, identities are HMACs; if it is not set,
 * they are plain hashes.
 */
export const KEY_SECRET = "WEIR_KEY_SECRET";
/**
 * The minimum length of this secret, in characters. In random base64, 32 characters hold 192 bits.
 */
export const MIN_KEY_SECRET = 32;

/** The name of the secret with which operators may read and change everything below `/_weir/`. */
export const ADMIN_TOKEN = "WEIR_ADMIN_TOKEN";
/** The name of the secret with which operators may only read. */
export const ADMIN_READ_TOKEN = "WEIR_ADMIN_READ_TOKEN";
/** The minimum length of both secrets, in characters. */
export const MIN_ADMIN_TOKEN = 32;
/** The name of the var with the team of Cloudflare Access: `https://TEAM.cloudflareaccess.com`. */
export const ACCESS_TEAM = "WEIR_ACCESS_TEAM";
/** The name of the var with the audience tag (AUD) of the Access application. */
export const ACCESS_AUD = "WEIR_ACCESS_AUD";
/** The name of the var that lets users of Access only read, if it is `read`. */
export const ACCESS_ROLE = "WEIR_ACCESS_ROLE";

/** Returns the names of all bindings, secrets and vars that Weir reads for a configuration. */
export function bindingNames(config: Config): string[] {
  const { nativeLimiter } = config;
  return [
    "UPSTASH_REDIS_REST_URL",
    "UPSTASH_REDIS_REST_TOKEN",
    "ORIGIN_URL",
    COUNTERS_BINDING,
    CONTROL_BINDING,
    ANALYTICS_BINDING,
    PREFIX_VAR,
    MODE_VAR,
    KEY_SECRET,
    ADMIN_TOKEN,
    ADMIN_READ_TOKEN,
    ACCESS_TEAM,
    ACCESS_AUD,
    ACCESS_ROLE,
    ...originBindings(config),
    ...(nativeLimiter ? [nativeLimiter.binding] : []),
    ...secretEffects(config).keys(),
  ];
}

/** Returns the names of the service bindings that a configuration names as origins, each once. */
export function originBindings({ origin, origins }: Config): string[] {
  const names = [origin, ...(origins?.values() ?? [])].flatMap((each) => each?.binding ?? []);
  return [...new Set(names)];
}

/** Returns the names of the configured secrets, each with the effect if the secret is not set. */
export function secretEffects({ rules, jwt }: Config): Map<string, string> {
  const names = new Map<string, string>();
  for (const { name, exempt } of rules) {
    for (const { value } of exempt?.headers ?? []) {
      if (typeof value === "string" || names.has(value.secret)) continue;
      names.set(value.secret, `it exempts nobody from the rule ${name}`);
    }
  }
  if (jwt?.kind === "secret")
    names.set(jwt.secret, "no token is verified, and every claim is absent");
  return names;
}

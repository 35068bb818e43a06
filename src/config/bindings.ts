import { ORIGIN_URL, type OriginConfig, parseOriginUrl } from "./origin.ts";
import { type Rule, shadowed } from "./rule.ts";
import { type Config, isPrefix, PREFIX } from "./schema.ts";
import { printableSecretName } from "./tiers.ts";

/** The name under which wrangler.toml binds the Durable Object namespace of `CounterObject`. */
export const COUNTERS_BINDING = "COUNTERS";
/**
 * The name under which wrangler.toml binds the Durable Object namespace of `ControlObject`. Without this binding,
 * there are no statistics, no overrides and no dashboard.
 */
export const CONTROL_BINDING = "WEIR_CONTROL";
/**
 * The name of the var that replaces the configuration's `prefix`, so that two environments with one configuration can
 * use one database.
 */
export const PREFIX_VAR = "WEIR_PREFIX";

/** The name of the var that sets the mode of all rules of a deployment. */
export const MODE_VAR = "WEIR_MODE";

/**
 * The name of the secret with which Weir hashes identities. With the secret, identities are HMACs; without it, plain
 * hashes.
 */
export const KEY_SECRET = "WEIR_KEY_SECRET";
/** The minimum length of `WEIR_KEY_SECRET`, in characters: 192 bits in random base64. */
export const MIN_KEY_SECRET = 32;

/** The name of the secret with which operators may read and change everything below `/_weir/`. */
export const ADMIN_TOKEN = "WEIR_ADMIN_TOKEN";
/** The name of the secret with which operators may only read. */
export const ADMIN_READ_TOKEN = "WEIR_ADMIN_READ_TOKEN";
/** The minimum length of both admin tokens, in characters. */
export const MIN_ADMIN_TOKEN = 32;
/** The name of the var with the team of Cloudflare Access: `https://TEAM.cloudflareaccess.com`. */
export const ACCESS_TEAM = "WEIR_ACCESS_TEAM";
/** The name of the var with the audience tag (AUD) of the Access application. */
export const ACCESS_AUD = "WEIR_ACCESS_AUD";
/** The name of the var with the role of users of Access: with `read`, they only read. */
export const ACCESS_ROLE = "WEIR_ACCESS_ROLE";

/** Returns the names of all bindings, secrets and vars that Weir reads for a configuration. */
export function bindingNames(config: Config): string[] {
  const { nativeLimiter, usage } = config;
  return [
    "UPSTASH_REDIS_REST_URL",
    "UPSTASH_REDIS_REST_TOKEN",
    "ORIGIN_URL",
    COUNTERS_BINDING,
    CONTROL_BINDING,
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
    ...(usage ? [usage.binding] : []),
    ...secretEffects(config).keys(),
  ];
}

/** Returns the names of the service bindings of a configuration's origins, each once. */
function originBindings({ origin, origins }: Config): string[] {
  const names = [origin, ...(origins?.values() ?? [])].flatMap((each) => each?.binding ?? []);
  return [...new Set(names)];
}

/** Returns the names of the configured secrets, each with the effect if it is missing. */
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

/** A Worker's bindings, as its handler receives them. Their values are not checked. */
export type Env = Readonly<Record<string, unknown>>;

/** Returns a var or secret without white space at its ends; undefined if it is missing or blank. */
export function textVar(env: Env, name: string): string | undefined {
  const value = env[name];
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" || typeof value === "function") && value !== null;
}

/** The values of the var {@link MODE_VAR}. */
const DEPLOYMENT_MODES = ["enforce", "shadow", "off"] as const;

/**
 * The effect of a deployment on all rules. `enforce`: each rule keeps its configured mode. `shadow`: every rule is in
 * shadow mode. `off`: no rule applies.
 */
export type DeploymentMode = (typeof DEPLOYMENT_MODES)[number];

/**
 * Reads the mode of a deployment. Accepts upper case, because the var is often set in a hurry.
 *
 * @returns undefined if the var is set to no mode. Limits then stay enforced, because a misspelt word must not turn
 * limits off
 */
export function readDeploymentMode(env: Env): DeploymentMode | undefined {
  const value = env[MODE_VAR];
  const word = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (word === undefined || word === "") return "enforce";
  return DEPLOYMENT_MODES.find((mode) => mode === word);
}

/** Returns the rules with the deployment's mode. */
export function rulesInMode(rules: readonly Rule[], mode: DeploymentMode): readonly Rule[] {
  if (mode === "off") return [];
  return mode === "shadow" ? rules.map(shadowed) : rules;
}

/** A setting that cannot work. */
interface Misconfigured {
  readonly kind: "misconfigured";
  /** The fault and its remedy, as a sentence for the log. Contains no secret. */
  readonly fault: string;
}

function misconfigured(fault: string): Misconfigured {
  return { kind: "misconfigured", fault };
}

/** The store that a Worker's bindings select. */
export type StoreBinding =
  | { readonly kind: "upstash"; readonly url: string; readonly token: string }
  | { readonly kind: "durable-object"; readonly namespace: DurableObjectNamespace }
  | { readonly kind: "memory" }
  | Misconfigured;

/**
 * Returns the first part of every stored key: the var {@link PREFIX_VAR}, or the configuration's `prefix` without it.
 */
export function readPrefix(config: Config, env: Env): string | Misconfigured {
  const value = env[PREFIX_VAR];
  // A value that is not a text, such as a number, is a mistake, so the default does not replace it.
  const isText = value === undefined || typeof value === "string";
  const prefix = isText ? (textVar(env, PREFIX_VAR) ?? config.prefix) : "";
  return isPrefix(prefix) ? prefix : misconfigured(`${PREFIX_VAR} is not a text of ${PREFIX}`);
}

/** Returns the store that the configuration names, or that the bindings select. */
function readStore({ store }: Config, env: Env): StoreBinding {
  const url = textVar(env, "UPSTASH_REDIS_REST_URL");
  switch (store ?? (url ? "upstash" : "durable-object")) {
    case "upstash":
      return readUpstash(url, textVar(env, "UPSTASH_REDIS_REST_TOKEN"));
    case "memory":
      return { kind: "memory" };
    case "durable-object": {
      const namespace = env[COUNTERS_BINDING];
      if (isObject(namespace) && "getByName" in namespace) {
        return { kind: "durable-object", namespace: namespace as DurableObjectNamespace };
      }
      return misconfigured(
        `no Durable Object namespace is bound as ${COUNTERS_BINDING}: add it to wrangler.toml, or set UPSTASH_REDIS_REST_URL`,
      );
    }
  }
}

/**
 * Returns a fault if a token is set without its URL. Durable Objects then count the requests, although the token
 * shows that the operator wants Redis.
 */
function unusedToken({ store: chosen }: Config, env: Env, store: StoreBinding) {
  if (chosen || store.kind !== "durable-object" || !textVar(env, "UPSTASH_REDIS_REST_TOKEN"))
    return;
  return "UPSTASH_REDIS_REST_URL is not set, but UPSTASH_REDIS_REST_TOKEN is: Durable Objects count instead of Redis";
}

function readUpstash(url: string | undefined, token: string | undefined): StoreBinding {
  if (!url) return misconfigured("UPSTASH_REDIS_REST_URL is not set");
  const base = parseOriginUrl(url);
  if (!base) return misconfigured("UPSTASH_REDIS_REST_URL is not an http or https URL");
  if (!token) return misconfigured("UPSTASH_REDIS_REST_TOKEN is not set");
  if (!/^[\x21-\x7e]+$/.test(token)) {
    return misconfigured(
      "UPSTASH_REDIS_REST_TOKEN has white space or characters other than printable ASCII",
    );
  }
  return { kind: "upstash", url: base, token };
}

/** The origin that a configuration and a Worker's bindings select. */
export type OriginBinding =
  /** The zone's own origin: the request continues as if there were no Worker. */
  | { readonly kind: "pass-through" }
  | { readonly kind: "url"; readonly base: string }
  | { readonly kind: "binding"; readonly service: Fetcher }
  | Misconfigured;

/** The clock that determines the windows. See `ConfigInput.clock`. */
export type Clock = NonNullable<Config["clock"]>;

/** In Redis, the store's clock costs a command in each call. In a Durable Object, it is free. */
export function defaultClock(kind: StoreBinding["kind"] | undefined): Clock {
  return kind === "upstash" ? "edge" : "store";
}

/** The settings that follow from a configuration and a Worker's bindings. */
export interface ResolvedBindings {
  readonly store: StoreBinding;
  /** The clock that determines the windows: that of the configuration, or the store's default. */
  readonly clock: Clock;
  /** The first part of every stored key: see `readPrefix`. */
  readonly prefix: string;
  /** The effect of the deployment on all rules: the var `WEIR_MODE`. */
  readonly mode: DeploymentMode;
  readonly origin: OriginBinding;
  /** The origins of single hosts. `*.example.com` means every host below `example.com`. */
  readonly origins: ReadonlyMap<string, OriginBinding>;
  /** Cloudflare's own limiter, if it is configured and bound. */
  readonly nativeLimiter?: RateLimit;
  /** The data set of the use by client, if it is configured and bound. */
  readonly usage?: AnalyticsEngineDataset;
  /** The secret with which identities are computed; undefined if {@link KEY_SECRET} is not set. */
  readonly keySecret?: string;
  /** The values of the configured secrets that are set, by the secrets' names. */
  readonly secrets: ReadonlyMap<string, string>;
  /**
   * Faults of the store, the native limiter, the data set and the mode, which also affect a `WeirService`. The texts contain no
   * secret.
   */
  readonly limiterFaults: readonly string[];
  /** Faults that affect only HTTP requests: missing secrets. The texts contain no secret. */
  readonly requestFaults: readonly string[];
}

/**
 * Reads the bindings once for an isolate. A faulty setting becomes {@link Misconfigured}, because an error would take
 * the whole site down. A store with a fault decides no request, so the rules' `onError` applies.
 */
export function resolveBindings(config: Config, env: Env): ResolvedBindings {
  const names = secretEffects(config);
  const secrets = new Map<string, string>();
  for (const name of names.keys()) {
    const value = textVar(env, name);
    if (value) secrets.set(name, value);
  }
  const requestFaults = [...names]
    .filter(([name]) => !secrets.has(name))
    .map(([name, effect]) => `${notSet(name)}: ${effect}`);
  const nativeLimiter = readBinding<RateLimit>(config.nativeLimiter, env, "limit");
  // With a faulty key secret, Weir decides no request, because the operator wants no plain hashes.
  const keySecret = readKeySecret(env);
  // With a faulty prefix, Weir decides no request, because another prefix could select the counters of another
  // environment.
  const prefix = readPrefix(config, env);
  const store =
    [keySecret, prefix].find((value) => typeof value === "object") ?? readStore(config, env);
  const limiterFaults = store.kind === "misconfigured" ? [store.fault] : [];
  const unused = unusedToken(config, env, store);
  if (unused !== undefined) limiterFaults.push(unused);
  if (config.nativeLimiter && !nativeLimiter) {
    limiterFaults.push(noNativeLimiter(config.nativeLimiter.binding));
  }
  const usage = readBinding<AnalyticsEngineDataset>(config.usage, env, "writeDataPoint");
  if (config.usage && !usage) {
    limiterFaults.push(
      `no data set of Analytics Engine is bound as ${config.usage.binding}, so Weir writes no use by client: add it to wrangler.toml`,
    );
  }
  const mode = readDeploymentMode(env);
  if (!mode) limiterFaults.push(`${MODE_VAR} is not enforce, shadow or off, so rules are enforced`);
  const origin = readOrigin(config, env);
  const origins = new Map(
    [...(config.origins ?? [])].map(([host, each]) => [host, readHostOrigin(each, env)]),
  );
  return {
    store,
    clock: config.clock ?? defaultClock(store.kind),
    prefix: typeof prefix === "string" ? prefix : config.prefix,
    mode: mode ?? "enforce",
    origin,
    origins,
    secrets,
    limiterFaults,
    requestFaults,
    ...(nativeLimiter && { nativeLimiter }),
    ...(usage && { usage }),
    ...(typeof keySecret === "string" && { keySecret }),
  };
}

function notSet(secret: string): string {
  const shown = printableSecretName(secret);
  const hint = shown === secret ? "" : " (write the secret's name there, not the secret)";
  return `${shown} is not set${hint}`;
}

function readKeySecret(env: Env): string | Misconfigured | undefined {
  const value = env[KEY_SECRET];
  // A secret of only white space is a mistake, for example because a file could not be read. So it counts as a fault,
  // instead of leading to plain hashes.
  if (value === undefined || value === "") return undefined;
  const secret = textVar(env, KEY_SECRET);
  if (secret !== undefined && secret.length >= MIN_KEY_SECRET) return secret;
  return misconfigured(
    `${KEY_SECRET} is not a text of at least ${MIN_KEY_SECRET} characters: create one with openssl rand -base64 32`,
  );
}

/** Returns the binding that a field names, if it has a method of this name. */
function readBinding<Bound>(
  field: { readonly binding: string } | undefined,
  env: Env,
  method: keyof Bound,
): Bound | undefined {
  const binding = field && env[field.binding];
  return isObject(binding) && method in binding ? (binding as Bound) : undefined;
}

function noNativeLimiter(binding: string): string {
  return `no rate limiter is bound as ${binding}: while the store fails, isolates count alone; add it to wrangler.toml`;
}

function readOrigin({ origin }: Config, env: Env): OriginBinding {
  if (origin?.binding) return readHostOrigin(origin, env);
  const url = textVar(env, "ORIGIN_URL") ?? origin?.url;
  if (!url) return { kind: "pass-through" };
  const base = parseOriginUrl(url);
  return base ? { kind: "url", base } : misconfigured(`ORIGIN_URL is not ${ORIGIN_URL}`);
}

/** Returns the origin of one host. The var `ORIGIN_URL` does not replace it. */
function readHostOrigin({ url, binding = "" }: OriginConfig, env: Env): OriginBinding {
  if (url) return { kind: "url", base: url };
  const service = env[binding];
  if (isObject(service) && "fetch" in service) {
    return { kind: "binding", service: service as Fetcher };
  }
  return misconfigured(`no service is bound as ${binding}: add it to wrangler.toml`);
}

/** Returns the faults of all origins, each once. */
export function originFaults({ origin, origins }: ResolvedBindings): string[] {
  const faults = [origin, ...origins.values()].flatMap((each) =>
    each.kind === "misconfigured" ? [each.fault] : [],
  );
  return [...new Set(faults)];
}

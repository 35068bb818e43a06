import { KEY_SECRET, MIN_KEY_SECRET, MODE_VAR, secretEffects } from "./binding-names.ts";
import { type DeploymentMode, readDeploymentMode } from "./deployment-mode.ts";
import { type Env, isObject, textVar } from "./env.ts";
import { printableSecretName } from "./exempt.ts";
import { ORIGIN_URL, type OriginConfig, parseOriginUrl } from "./origin.ts";
import type { Config } from "./schema.ts";
import {
  type Misconfigured,
  misconfigured,
  readPrefix,
  readStore,
  type StoreBinding,
  unusedToken,
} from "./store-binding.ts";

export type { Misconfigured, StoreBinding } from "./store-binding.ts";

/** The origin that a configuration and a Worker's bindings select. */
export type OriginBinding =
  /** The zone's own origin: the request continues as if there were no Worker. */
  | { readonly kind: "pass-through" }
  | { readonly kind: "url"; readonly base: string }
  | { readonly kind: "binding"; readonly service: Fetcher }
  | Misconfigured;

/** The settings that follow from a configuration and a Worker's bindings. */
export interface ResolvedBindings {
  readonly store: StoreBinding;
  /** The first part of every stored key: the var `WEIR_PREFIX`, or `prefix` if it is not set. */
  readonly prefix: string;
  /** What the deployment does with all rules: the var `WEIR_MODE`. */
  readonly mode: DeploymentMode;
  readonly origin: OriginBinding;
  /** The origins of single hosts. `*.example.com` stands for every host below `example.com`. */
  readonly origins: ReadonlyMap<string, OriginBinding>;
  /** Cloudflare's own limiter, if the configuration names it and it is bound. */
  readonly nativeLimiter?: RateLimit;
  /** The secret with which identities are computed; undefined if {@link KEY_SECRET} is not set. */
  readonly keySecret?: string;
  /** The values of the configured secrets that are set. The keys are the names of the secrets. */
  readonly secrets: ReadonlyMap<string, string>;
  /**
   * Faults of the store, the native limiter and the mode. These faults also affect a `WeirService`.
   * The texts contain no secret.
   */
  readonly limiterFaults: readonly string[];
  /**
   * Faults that affect only HTTP requests: secrets that are not set. The texts contain no secret.
   */
  readonly requestFaults: readonly string[];
}

/**
 * Reads the bindings once for an isolate. The function throws no error for a faulty setting,
 * because an error would take the whole site down. The setting becomes {@link Misconfigured}
 * instead. A store with a fault decides no request, so the rules' `onError` applies.
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
  const nativeLimiter = readNativeLimiter(config, env);
  // If the key secret is faulty, nothing is decided, because the operator wants no plain hashes.
  const keySecret = readKeySecret(env);
  // If the prefix is faulty, Weir decides no request: another prefix could select the counters of
  // another environment.
  const prefix = readPrefix(config, env);
  const store =
    [keySecret, prefix].find((value) => typeof value === "object") ?? readStore(config, env);
  const limiterFaults = store.kind === "misconfigured" ? [store.fault] : [];
  const unused = unusedToken(config, env, store);
  if (unused !== undefined) limiterFaults.push(unused);
  if (config.nativeLimiter && !nativeLimiter) {
    limiterFaults.push(noNativeLimiter(config.nativeLimiter.binding));
  }
  const mode = readDeploymentMode(env);
  if (!mode) limiterFaults.push(`${MODE_VAR} is not enforce, shadow or off, so rules are enforced`);
  const origin = readOrigin(config, env);
  const origins = new Map(
    [...(config.origins ?? [])].map(([host, each]) => [host, readHostOrigin(each, env)]),
  );
  return {
    store,
    prefix: typeof prefix === "string" ? prefix : config.prefix,
    mode: mode ?? "enforce",
    origin,
    origins,
    secrets,
    limiterFaults,
    requestFaults,
    ...(nativeLimiter && { nativeLimiter }),
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
  // A secret that consists only of white space is a mistake, for example because a file could not
  // be read. So it counts as a fault and does not lead to plain hashes.
  if (value === undefined || value === "") return undefined;
  const secret = textVar(env, KEY_SECRET);
  if (secret !== undefined && secret.length >= MIN_KEY_SECRET) return secret;
  return misconfigured(
    `${KEY_SECRET} is not a text of at least ${MIN_KEY_SECRET} characters: create one with openssl rand -base64 32`,
  );
}

function readNativeLimiter({ nativeLimiter }: Config, env: Env): RateLimit | undefined {
  const binding = nativeLimiter && env[nativeLimiter.binding];
  return isObject(binding) && "limit" in binding ? (binding as RateLimit) : undefined;
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

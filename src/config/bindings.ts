import { printableSecretName } from "./exempt.ts";
import { ORIGIN_URL, parseOriginUrl } from "./origin.ts";
import type { Config } from "./schema.ts";

/** A Worker's bindings, unchecked, as its handler gets them. */
export type Env = Readonly<Record<string, unknown>>;

/** The name of the binding of the `CounterObject` namespace in wrangler.toml. */
export const COUNTERS_BINDING = "COUNTERS";

/** The name of the secret that makes identities HMACs. Without it, they are plain hashes. */
export const KEY_SECRET = "WEIR_KEY_SECRET";
/** The fewest characters that it may have. In random base64, 32 characters hold 192 bits. */
const MIN_KEY_SECRET = 32;

/** A setting that cannot work. */
export interface Misconfigured {
  readonly kind: "misconfigured";
  /** What is wrong, and what to do about it. Contains no secret. */
  readonly fault: string;
}

/** The store that a Worker's bindings select. */
export type StoreBinding =
  | { readonly kind: "upstash"; readonly url: string; readonly token: string }
  | { readonly kind: "durable-object"; readonly namespace: DurableObjectNamespace }
  | { readonly kind: "memory" }
  | Misconfigured;

/** The origin that a configuration and a Worker's bindings select. */
export type OriginBinding =
  /** The zone's own origin: the request continues as if there were no Worker. */
  | { readonly kind: "pass-through" }
  | { readonly kind: "url"; readonly base: string }
  | { readonly kind: "binding"; readonly service: Fetcher }
  | Misconfigured;

/** The settings that a configuration and a Worker's bindings result in. */
export interface ResolvedBindings {
  readonly store: StoreBinding;
  readonly origin: OriginBinding;
  /** Cloudflare's own limiter, if the configuration names it and it is bound. */
  readonly nativeLimiter?: RateLimit;
  /** The secret of the identities; undefined if {@link KEY_SECRET} is not set. */
  readonly keySecret?: string;
  /** The values of the secrets that the configuration names, by name. Secrets that are not set are absent. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Faults of the store and of the native limiter. They also affect a `WeirService`. No fault contains a secret. */
  readonly limiterFaults: readonly string[];
  /** Faults that affect only requests: the secrets of tokens and exemptions. No fault contains a secret. */
  readonly requestFaults: readonly string[];
}

/**
 * Reads the bindings once for an isolate. A fault throws no error, because an error would take the whole
 * site down. It becomes a setting that decides nothing, so that the rules' `onError` applies.
 */
export function resolveBindings(config: Config, env: Env): ResolvedBindings {
  const names = secretEffects(config);
  const secrets = new Map<string, string>();
  for (const name of names.keys()) {
    const value = text(env, name);
    if (value) secrets.set(name, value);
  }
  const requestFaults = [...names]
    .filter(([name]) => !secrets.has(name))
    .map(([name, effect]) => `${notSet(name)}: ${effect}`);
  const nativeLimiter = readNativeLimiter(config, env);
  const keySecret = readKeySecret(env);
  // With a faulty key secret nothing is decided: plain hashes are not what the operator wants to store.
  const store = typeof keySecret === "object" ? keySecret : readStore(config, env);
  const limiterFaults = store.kind === "misconfigured" ? [store.fault] : [];
  const unused = unusedToken(config, env, store);
  if (unused !== undefined) limiterFaults.push(unused);
  if (config.nativeLimiter && !nativeLimiter) {
    limiterFaults.push(noNativeLimiter(config.nativeLimiter.binding));
  }
  const origin = readOrigin(config, env);
  return {
    store,
    origin,
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
  // White space alone is a mistake, such as a file that could not be read. It must not mean plain hashes.
  if (value === undefined || value === "") return undefined;
  const secret = text(env, KEY_SECRET);
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

/** The secrets that a configuration names, each with the effect if it is not set. */
function secretEffects({ rules, jwt }: Config): Map<string, string> {
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

function readStore({ store }: Config, env: Env): StoreBinding {
  const url = text(env, "UPSTASH_REDIS_REST_URL");
  switch (store ?? (url ? "upstash" : "durable-object")) {
    case "upstash":
      return readUpstash(url, text(env, "UPSTASH_REDIS_REST_TOKEN"));
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

/** The fault of a token without its URL: Durable Objects count, although the token shows that Redis was intended. */
function unusedToken({ store: chosen }: Config, env: Env, store: StoreBinding) {
  if (chosen || store.kind !== "durable-object" || !text(env, "UPSTASH_REDIS_REST_TOKEN")) return;
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

function readOrigin({ origin }: Config, env: Env): OriginBinding {
  if (origin?.binding) {
    const service = env[origin.binding];
    if (isObject(service) && "fetch" in service) {
      return { kind: "binding", service: service as Fetcher };
    }
    return misconfigured(`no service is bound as ${origin.binding}: add it to wrangler.toml`);
  }
  const url = text(env, "ORIGIN_URL") ?? origin?.url;
  if (!url) return { kind: "pass-through" };
  const base = parseOriginUrl(url);
  return base ? { kind: "url", base } : misconfigured(`ORIGIN_URL is not ${ORIGIN_URL}`);
}

/** A var or secret, without white space at its ends; undefined if nothing is left. */
function text(env: Env, name: string): string | undefined {
  const value = env[name];
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" || typeof value === "function") && value !== null;
}

function misconfigured(fault: string): Misconfigured {
  return { kind: "misconfigured", fault };
}

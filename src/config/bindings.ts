import { shownSecretName } from "./exempt.ts";
import { ORIGIN_URL, parseOriginUrl } from "./origin.ts";
import type { Config } from "./schema.ts";

/** A Worker's bindings, as its handler gets them: nothing in them is known to be right. */
export type Env = Readonly<Record<string, unknown>>;

/** The binding of the `CounterObject` namespace, in wrangler.toml. */
export const COUNTERS_BINDING = "COUNTERS";

/** The secret that makes identities HMACs, if it is set. */
export const KEY_SECRET = "WEIR_KEY_SECRET";
/** Characters that it has at least: of random base64, 192 bits. */
const MIN_KEY_SECRET = 32;

/** Something that cannot work as it is configured, and what to do about it. */
export interface Misconfigured {
  readonly kind: "misconfigured";
  readonly fault: string;
}

export type StoreBinding =
  | { readonly kind: "upstash"; readonly url: string; readonly token: string }
  | { readonly kind: "durable-object"; readonly namespace: DurableObjectNamespace }
  | { readonly kind: "memory" }
  | Misconfigured;

export type OriginBinding =
  /** The zone's own: the request goes on to where it would have gone without a Worker. */
  | { readonly kind: "pass-through" }
  | { readonly kind: "url"; readonly base: string }
  | { readonly kind: "binding"; readonly service: Fetcher }
  | Misconfigured;

/** What a configuration and a Worker's bindings come to. */
export interface ResolvedBindings {
  readonly store: StoreBinding;
  readonly origin: OriginBinding;
  /** Cloudflare's own limiter, if the configuration names it and it is there. */
  readonly nativeLimiter?: RateLimit;
  /** What identities are made with; undefined when {@link KEY_SECRET} is not set. */
  readonly keySecret?: string;
  /** What the secrets hold that the configuration names, by their names; those that are set. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Faults of the limiter, which concern programs too: of its store and of the native limiter. */
  readonly limiterFaults: readonly string[];
  /** Faults of what only requests need: the secrets of tokens and exemptions. None contains a secret. */
  readonly requestFaults: readonly string[];
}

/**
 * Reads the bindings once. A fault does not throw, since that would take the site down with the
 * limiter: it becomes a setting that decides nothing, and the rules' `onError` applies.
 */
export function resolveBindings(config: Config, env: Env): ResolvedBindings {
  const names = secretsNamed(config);
  const secrets = new Map<string, string>();
  for (const name of names.keys()) {
    const value = text(env, name);
    if (value) secrets.set(name, value);
  }
  const requestFaults = [...names]
    .filter(([name]) => !secrets.has(name))
    .map(([name, consequence]) => `${notSet(name)}: ${consequence}`);
  const nativeLimiter = readNativeLimiter(config, env);
  const keySecret = readKeySecret(env);
  // Nothing is decided, rather than by plain hashes, which the operator does not want stored.
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
  const shown = shownSecretName(secret);
  const hint = shown === secret ? "" : " (write the secret's name there, not the secret)";
  return `${shown} is not set${hint}`;
}

function readKeySecret(env: Env): string | Misconfigured | undefined {
  const value = env[KEY_SECRET];
  // Blanks are set by mistake, as a file that could not be read: plain hashes are not what was meant.
  if (value === undefined || value === "") return undefined;
  const secret = text(env, KEY_SECRET);
  if (secret !== undefined && secret.length >= MIN_KEY_SECRET) return secret;
  return misconfigured(
    `${KEY_SECRET} is not a text of at least ${MIN_KEY_SECRET} characters: openssl rand -base64 32 makes one`,
  );
}

function readNativeLimiter({ nativeLimiter }: Config, env: Env): RateLimit | undefined {
  const binding = nativeLimiter && env[nativeLimiter.binding];
  return isObject(binding) && "limit" in binding ? (binding as RateLimit) : undefined;
}

function noNativeLimiter(binding: string): string {
  return `no rate limiter is bound as ${binding}: without the store, isolates count alone; add it to wrangler.toml`;
}

/** The secrets that a configuration names, each with what comes of it when it is not set. */
function secretsNamed({ rules, jwt }: Config): Map<string, string> {
  const names = new Map<string, string>();
  for (const { name, exempt } of rules) {
    for (const { value } of exempt?.headers ?? []) {
      if (typeof value === "string" || names.has(value.secret)) continue;
      names.set(value.secret, `nobody is exempt by it from the rule ${name}`);
    }
  }
  if (jwt?.kind === "secret") names.set(jwt.secret, "no token is verified, and no claim counts");
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

/** A missing URL switches to the other store, although the token says that Redis was meant. */
function unusedToken({ store: chosen }: Config, env: Env, store: StoreBinding) {
  if (chosen || store.kind !== "durable-object" || !text(env, "UPSTASH_REDIS_REST_TOKEN")) return;
  return "UPSTASH_REDIS_REST_URL is not set, though UPSTASH_REDIS_REST_TOKEN is: Redis is not used, and Durable Objects count";
}

function readUpstash(url: string | undefined, token: string | undefined): StoreBinding {
  if (!url) return misconfigured("UPSTASH_REDIS_REST_URL is not set");
  const base = parseOriginUrl(url);
  if (!base) return misconfigured("UPSTASH_REDIS_REST_URL is not an http or https URL");
  if (!token) return misconfigured("UPSTASH_REDIS_REST_TOKEN is not set");
  if (!/^[\x21-\x7e]+$/.test(token)) {
    return misconfigured("UPSTASH_REDIS_REST_TOKEN has white space or other odd characters in it");
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

/** A var or secret; an empty one is as good as none. */
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

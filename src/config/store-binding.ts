import { COUNTERS_BINDING, PREFIX_VAR } from "./binding-names.ts";
import { type Env, isObject, textVar } from "./env.ts";
import { parseOriginUrl } from "./origin.ts";
import { type Config, isPrefix, PREFIX } from "./schema.ts";

/** A setting that cannot work. */
export interface Misconfigured {
  readonly kind: "misconfigured";
  /** The fault and its remedy, as a sentence for the log. Contains no secret. */
  readonly fault: string;
}

/** Returns a setting that cannot work. */
export function misconfigured(fault: string): Misconfigured {
  return { kind: "misconfigured", fault };
}

/** The store that a Worker's bindings select. */
export type StoreBinding =
  | { readonly kind: "upstash"; readonly url: string; readonly token: string }
  | { readonly kind: "durable-object"; readonly namespace: DurableObjectNamespace }
  | { readonly kind: "memory" }
  | Misconfigured;

/**
 * Returns the first part of every stored key: the var {@link PREFIX_VAR}, or `prefix` of the
 * configuration if the var is not set.
 */
export function readPrefix(config: Config, env: Env): string | Misconfigured {
  const value = env[PREFIX_VAR];
  // A value of another type, such as a number, is a mistake, so the default does not replace it.
  const isText = value === undefined || typeof value === "string";
  const prefix = isText ? (textVar(env, PREFIX_VAR) ?? config.prefix) : "";
  return isPrefix(prefix) ? prefix : misconfigured(`${PREFIX_VAR} is not a text of ${PREFIX}`);
}

/** Returns the store that the configuration names, or that the bindings select. */
export function readStore({ store }: Config, env: Env): StoreBinding {
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
 * Returns a fault if a token is set without its URL. In this case, Durable Objects count the
 * requests, although the token shows that the operator wants Redis.
 */
export function unusedToken({ store: chosen }: Config, env: Env, store: StoreBinding) {
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

import { textVar } from "../../src/config/env.ts";
import type { Deployment } from "./deployment.ts";

/** The name of the secret with the URL of the Redis database. */
export const URL_SECRET = "UPSTASH_REDIS_REST_URL";
/** The name of the secret with the token of the Redis database. */
export const TOKEN_SECRET = "UPSTASH_REDIS_REST_TOKEN";

/** Returns a var as the Worker reads it; undefined if it is missing or blank. */
export function textVarOf({ vars }: Deployment, name: string): string | undefined {
  return textVar(vars, name);
}

/** Whether `secrets.required` names a secret. */
export function isSecretListed({ requiredSecrets }: Deployment, name: string): boolean {
  return requiredSecrets?.includes(name) === true;
}

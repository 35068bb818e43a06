import { ADMIN_READ_TOKEN, ADMIN_TOKEN, MIN_ADMIN_TOKEN } from "../config/binding-names.ts";
import { type Env, textVar } from "../config/env.ts";
import type { Role } from "./admin-env.ts";

/** A configured token, and what it allows. */
export interface AdminToken {
  readonly value: string;
  readonly role: Role;
}

/**
 * Reads the tokens of operators. A faulty token opens nothing.
 *
 * @param onFault called with each fault. It contains no secret
 */
export function readAdminTokens(env: Env, onFault: (fault: string) => void): AdminToken[] {
  const tokens: AdminToken[] = [];
  for (const [name, role] of [
    [ADMIN_TOKEN, "admin"],
    [ADMIN_READ_TOKEN, "read"],
  ] as const) {
    const value = textVar(env, name);
    if (value === undefined) continue;
    if (value.length < MIN_ADMIN_TOKEN) {
      onFault(`${name} has fewer than ${MIN_ADMIN_TOKEN} characters`);
    } else if (tokens.some((other) => other.value === value)) {
      onFault(`${name} is the same text as ${ADMIN_TOKEN}`);
    } else {
      tokens.push({ value, role });
    }
  }
  return tokens;
}

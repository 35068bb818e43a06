import {
  ACCESS_AUD,
  ACCESS_ROLE,
  ACCESS_TEAM,
  ADMIN_READ_TOKEN,
  ADMIN_TOKEN,
  MIN_ADMIN_TOKEN,
} from "../config/binding-names.ts";
import { type Env, textVar } from "../config/env.ts";
import type { Role } from "./operator.ts";

/** A configured token, and what it allows. */
export interface AdminToken {
  readonly value: string;
  readonly role: Role;
}

/** The Cloudflare Access application whose users are operators. */
export interface AccessApplication {
  /** The URL of the team, `https://TEAM.cloudflareaccess.com`. It issues the tokens. */
  readonly team: string;
  /** The application's audience tag. */
  readonly audience: string;
  /** What all users of the application may do. */
  readonly role: Role;
}

/** The credentials that a Worker accepts. */
export interface Credentials {
  readonly tokens: readonly AdminToken[];
  readonly access?: AccessApplication;
}

/** Called with a fault of the credentials. The text contains no secret. */
export type OnFault = (fault: string) => void;

/**
 * Reads the credentials that the Worker's bindings configure. A faulty credential opens nothing.
 *
 * @returns undefined if there is no valid credential
 */
export function readCredentials(env: Env, onFault: OnFault): Credentials | undefined {
  const tokens = readTokens(env, onFault);
  const access = readAccess(env, onFault);
  if (tokens.length === 0 && !access) return undefined;
  return { tokens, ...(access && { access }) };
}

function readTokens(env: Env, onFault: OnFault): AdminToken[] {
  const admin = readToken(env, ADMIN_TOKEN, onFault);
  const read = readToken(env, ADMIN_READ_TOKEN, onFault);
  const tokens: AdminToken[] = [];
  if (admin !== undefined) tokens.push({ value: admin, role: "admin" });
  if (read === undefined) return tokens;
  if (read !== textVar(env, ADMIN_TOKEN)) return [...tokens, { value: read, role: "read" }];
  // Nobody can know which of both rights the text should have, so it gets none.
  onFault(`${ADMIN_READ_TOKEN} is the same text as ${ADMIN_TOKEN}, so neither is accepted`);
  return [];
}

function readToken(env: Env, name: string, onFault: OnFault): string | undefined {
  const token = textVar(env, name);
  if (token === undefined) return undefined;
  if (token.length < MIN_ADMIN_TOKEN) {
    onFault(`${name} has fewer than ${MIN_ADMIN_TOKEN} characters`);
    return undefined;
  }
  // Clients cannot send any other character in the header Authorization.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  onFault(`${name} has characters other than letters, digits and punctuation of ASCII`);
  return undefined;
}

function readAccess(env: Env, onFault: OnFault): AccessApplication | undefined {
  const team = textVar(env, ACCESS_TEAM)?.replace(/\/$/, "");
  const audience = textVar(env, ACCESS_AUD);
  const role = textVar(env, ACCESS_ROLE) ?? "admin";
  if (team === undefined && audience === undefined) return undefined;
  if (team === undefined || audience === undefined) {
    const [set, missing] =
      team === undefined ? [ACCESS_AUD, ACCESS_TEAM] : [ACCESS_TEAM, ACCESS_AUD];
    onFault(`${missing} is not set although ${set} is, so no user of Access is accepted`);
  } else if (!/^https:\/\/[a-z0-9-]+\.cloudflareaccess\.com$/.test(team)) {
    onFault(`${ACCESS_TEAM} is not https://TEAM.cloudflareaccess.com`);
  } else if (!/^[0-9a-f]{64}$/.test(audience)) {
    onFault(
      `${ACCESS_AUD} is not the audience tag of an application: 64 characters of 0-9 and a-f`,
    );
  } else if (role !== "admin" && role !== "read") {
    onFault(`${ACCESS_ROLE} is not admin or read, so no user of Access is accepted`);
  } else {
    return { team, audience, role };
  }
  return undefined;
}

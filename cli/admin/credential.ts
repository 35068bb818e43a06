import { checkTokenForm } from "../doctor/access.ts";
import { readSettings, type Setting, SettingsError } from "../doctor/settings.ts";
import { AdminError, EXIT } from "./admin-error.ts";

/** The secret with all rights comes first. With the other one, an operator can only read. */
export const TOKEN_NAMES = ["WEIR_ADMIN_TOKEN", "WEIR_ADMIN_READ_TOKEN"] as const;

/** Where to look for the token. */
export interface CredentialOptions {
  readonly env?: string;
  readonly wrangler?: string;
}

/**
 * Finds the token of an operator. An environment variable comes before all files, also if it is the
 * token for reading: an operator who sets it for a deployment must not send the token of `.dev.vars` there.
 *
 * @throws {AdminError} if there is no token, or if it cannot be sent in a header field
 */
export async function findToken({ env, wrangler }: CredentialOptions): Promise<Setting> {
  const token = fromEnvironment() ?? (await fromFiles(env, wrangler));
  if (!token) {
    throw new AdminError(
      EXIT.unavailable,
      `There is no token: neither ${TOKEN_NAMES.join(" nor ")} is set. Set one of them as an environment variable or in .dev.vars, to the same text as the secret of the Worker. If the Worker has none yet: npx wrangler secret put WEIR_ADMIN_TOKEN. \`npm run dev\` of Weir's repository prints its token.`,
    );
  }
  const malformed = checkTokenForm("The token", token.value);
  if (malformed) {
    throw new AdminError(EXIT.unavailable, `${malformed.value} (from ${token.source}).`);
  }
  return token;
}

function fromEnvironment(): Setting | undefined {
  for (const name of TOKEN_NAMES) {
    const value = process.env[name]?.trim();
    if (value) return { value, source: `the environment variable ${name}` };
  }
  return undefined;
}

async function fromFiles(env?: string, wrangler?: string): Promise<Setting | undefined> {
  try {
    const settings = await readSettings("weir.config.ts", env, wrangler);
    for (const name of TOKEN_NAMES) {
      const found = settings(name);
      if (found) return { value: found.value, source: `${name} of ${found.source}` };
    }
    return undefined;
  } catch (error) {
    if (error instanceof SettingsError) throw new AdminError(EXIT.unavailable, error.message);
    throw error;
  }
}

import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { localSecrets } from "../cli/doctor/settings.ts";

/** The token of the admin surface in a run on this machine. */
export interface DevToken {
  readonly value: string;
  /** The file with the token that the user has set; undefined if this run uses a token of its own. */
  readonly userFile?: string;
  /** The vars that pass the token to the Worker; empty if wrangler itself reads the token. */
  readonly vars: Readonly<Record<string, string>>;
}

const NAME = "WEIR_ADMIN_TOKEN";
const ROOT = join(import.meta.dirname, "..");

/**
 * Returns the token that the user has set in `.dev.vars` or `.env`, or else a random token.
 *
 * The random token is kept in a file, so that browsers stay logged in after a new start. With a constant token, any
 * page in the developer's browser could change overrides.
 *
 * @param folder the folder with `.dev.vars` @default this repository
 */
export function devToken(folder: string = ROOT): DevToken {
  for (const source of localSecrets(folder, process.env.CLOUDFLARE_ENV || undefined, process.env)) {
    const value = source.values[NAME];
    if (typeof value === "string" && value.trim() !== "") {
      return { value: value.trim(), userFile: source.label(NAME), vars: {} };
    }
  }
  const value = keptToken(join(folder, ".wrangler/dev-admin-token"));
  return { value, vars: { [NAME]: value } };
}

function keptToken(file: string): string {
  mkdirSync(dirname(file), { recursive: true });
  try {
    // If two runs start at the same time, this flag makes one write fail, and both runs read the same token.
    writeFileSync(file, randomBytes(24).toString("base64url"), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return readFileSync(file, "utf8").trim();
}

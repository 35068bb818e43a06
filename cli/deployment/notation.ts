/** A value of a setting in wrangler's configuration. */
type Value = string | number | boolean | readonly string[] | Readonly<Record<string, unknown>>;

/**
 * Writes a setting in the notation of wrangler's file, so that users can copy it.
 *
 * @param file the name of wrangler's file
 * @example settingIn("wrangler.toml", "workers_dev", false) // workers_dev = false
 * @example settingIn("wrangler.jsonc", "workers_dev", false) // "workers_dev": false
 */
export function settingIn(file: string, name: string, value: Value): string {
  const shown = valueIn(file, value);
  return isToml(file) ? `${name} = ${shown}` : `${JSON.stringify(name)}: ${shown}`;
}

/**
 * Returns the command that sets a secret of a deployed Worker.
 *
 * @param name the name of the secret, or a placeholder such as `NAME`
 * @param environment the environment of wrangler's configuration; undefined for the top level
 * @example secretCommand("JWT_SECRET", "staging") // npx wrangler secret put JWT_SECRET --env staging
 */
export function secretCommand(name: string, environment: string | undefined): string {
  const option = environment === undefined ? "" : ` --env ${environment}`;
  return `npx wrangler secret put ${name}${option}`;
}

/** Writes a value in the notation of wrangler's file. */
export function valueIn(file: string, value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((each) => valueIn(file, each)).join(", ")}]`;
  const fields = Object.entries(value).map(([name, each]) => settingIn(file, name, each as Value));
  return `{ ${fields.join(", ")} }`;
}

/** Whether wrangler's file is in TOML, and not in JSON. */
export function isToml(file: string): boolean {
  return file.endsWith(".toml");
}

/** Values from one place. */
export interface Source {
  /** Returns the name of the file, or of another place, that has the value of a name. */
  label(name: string): string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The settings cannot be read, for example because wrangler's configuration has no such environment. */
export class SettingsError extends Error {}

/** Values from one place. */
export interface Source {
  /** Returns where the value of a variable comes from: the name of a file or of another place. */
  label(name: string): string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The settings cannot be read, for example because wrangler's configuration has no such environment. */
export class SettingsError extends Error {}

/** A fault or a warning of `weir check`. */
export interface Finding {
  /** The stable name of the finding, which docs/check.md explains. */
  readonly code: string;
  /**
   * `"fault"`: the deployment cannot work as configured. `"warning"`: the setting is valid, but the
   * author may have meant something else.
   */
  readonly severity: "fault" | "warning";
  /**
   * The file with the setting: the path of the configuration as given on the command line, or the
   * name of wrangler's file.
   */
  readonly file: string;
  /** The environment in wrangler's configuration; undefined for its top level. */
  readonly environment?: string | undefined;
  /** The path of the setting in its file, such as `rules[0].key`; empty for the whole file. */
  readonly path: string;
  /** The effect of the setting, as a sentence without its full stop. */
  readonly message: string;
  /**
   * The recommended change, as a sentence without its full stop. Undefined for the code `config`,
   * whose message contains the allowed values.
   */
  readonly cure?: string | undefined;
}

/** A finding in one file. The caller adds the file and the environment. */
export type LocalFinding = Omit<Finding, "file" | "environment">;

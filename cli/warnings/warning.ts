/** A valid setting that leaves a way around the rules. */
export interface Warning {
  /** The stable name of the warning, which docs/security.md explains. */
  readonly code: string;
  /** The place: a path in the configuration, or a field of wrangler's configuration. */
  readonly where: string;
  /** What a client can do because of the setting. */
  readonly what: string;
  /** What to change. */
  readonly advice: string;
}

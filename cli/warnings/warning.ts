/** A valid setting that leaves a way around the rules. */
export interface Warning {
  /** The stable name of the warning, which docs/security.md explains. */
  readonly code: string;
  /** The path of the setting in the configuration, or its field in wrangler's configuration. */
  readonly where: string;
  /** The effect: a client's way around the rules, or a rule that counts nothing. */
  readonly what: string;
  /** The recommended change. */
  readonly advice: string;
}

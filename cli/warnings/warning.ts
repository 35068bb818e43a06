/** Something that is valid, and leaves a way around the rules. */
export interface Warning {
  /** Never changes, and has its line in docs/security.md. */
  readonly code: string;
  /** Where it is: a path in the configuration, or a field of wrangler's. */
  readonly where: string;
  /** What can be done because of it. */
  readonly what: string;
  /** What to write instead. */
  readonly advice: string;
}

/** What a command prints: the answer of the API for `--json`, and the same as text. */
export interface Printed {
  readonly json: unknown;
  readonly text: string;
}

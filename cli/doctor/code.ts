/**
 * How serious a finding is. `unknown` means that the database did not return the value, so the
 * finding is neither good nor bad.
 */
export type Severity = "ok" | "unknown" | "warning" | "fault";

/** What is the same in all findings with one code. */
export interface Code {
  readonly severity: Severity;
  /** The cure. A finding with the severity `ok` needs none. */
  readonly advice?: string;
}

/**
 * How serious a finding is. `unknown` means that the database did not return the value, so the
 * finding is neither good nor bad.
 */
export type Severity = "ok" | "unknown" | "warning" | "fault";

/** The fields that are equal in all findings with the same code. */
export interface Code {
  readonly severity: Severity;
  /** The cure. A finding with the severity `ok` needs none. */
  readonly advice?: string;
}

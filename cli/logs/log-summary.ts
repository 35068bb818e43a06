import type { LogFormat } from "./log-format.ts";
import type { BrokenLine } from "./log-progress.ts";

/** What was read from logs, for reports. Times are in ISO 8601, UTC. */
export interface LogSummary {
  /** The files as the user has written them. */
  readonly files: readonly string[];
  readonly formats: readonly LogFormat[];
  /** Non-empty lines, or entries of HAR files: requests + broken + late + outside + ignored. */
  readonly lines: number;
  readonly requests: number;
  readonly broken: number;
  readonly brokenLines: readonly BrokenLine[];
  readonly late: number;
  readonly outside: number;
  readonly ignored: number;
  /** Present if a file could not be read to its end, such as a download that was cut off. */
  readonly isIncomplete?: true | undefined;
  /** The time of the first request and of the last one; undefined without a request. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

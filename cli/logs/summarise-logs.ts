import type { Logs } from "./open-logs.ts";
import type { LogProgress, LogSummary } from "./progress.ts";

/** The times of the first request and of the last one, in milliseconds since the Unix epoch. */
export class LogPeriod {
  from: number | undefined;
  to: number | undefined;

  /** Adds requests in the order of their times, by the times of the first one and of the last one. */
  add(firstAt: number, lastAt: number): void {
    this.from ??= firstAt;
    this.to = lastAt;
  }

  get lengthMs(): number {
    return (this.to ?? 0) - (this.from ?? 0);
  }
}

/**
 * Returns what has been read from logs.
 *
 * @param files the files as the user has written them
 */
export function summariseLogs(
  files: readonly string[],
  { formats, progress }: Pick<Logs, "formats" | "progress">,
  { from, to }: LogPeriod,
): LogSummary {
  const {
    lines,
    requests,
    broken,
    brokenLines,
    late,
    outside,
    ignored,
    isIncomplete,
  }: LogProgress = progress;
  return {
    files,
    formats,
    ...{ lines, requests, broken, brokenLines, late, outside, ignored },
    isIncomplete: isIncomplete || undefined,
    from: from === undefined ? undefined : new Date(from).toISOString(),
    to: to === undefined ? undefined : new Date(to).toISOString(),
  };
}

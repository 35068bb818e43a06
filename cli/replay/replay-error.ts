import { plural } from "../doctor/finding.ts";
import type { LogSummary } from "../logs/log-summary.ts";

/** A replay that is not possible. The message names the reason and the cure. */
export class ReplayError extends Error {
  /** 1 for options that do not fit together, the code of a signal that came too early, and 2 for anything else. */
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns the error for logs without a request to replay. A pipeline must not take them for a success. */
export function noRequests({
  files,
  lines,
  broken,
  late,
  outside,
  brokenLines,
}: LogSummary): ReplayError {
  const reasons = [
    outside > 0 && `${plural(outside, "request")} outside --from and --to`,
    broken > 0 && `${plural(broken, "line")} that could not be read`,
    late > 0 && `${plural(late, "line")} that came too late (raise --max-delay)`,
  ].filter((reason) => reason !== false);
  const has = reasons.length > 0 ? reasons.join(", ") : `${plural(lines, "line")}`;
  const [first] = brokenLines;
  const example = first ? `\n${first.file}:${first.line}: ${first.reason}` : "";
  return new ReplayError(
    2,
    `${files.join(", ")}: no request to replay. The log has ${has}.${example}`,
  );
}

import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { printable } from "../doctor/finding.ts";
import { hostName } from "../logs/host-name.ts";
import { LogError } from "../logs/log-error.ts";
import type { LogFormat } from "../logs/log-format.ts";
import { type LogCommandOptions, logOptionsOf } from "../logs/log-options.ts";
import type { LogOptions, Logs } from "../logs/open-logs.ts";
import { ReplayError } from "./replay-error.ts";

/** Formats whose fields `--map` can name. */
const MAPPED: readonly LogFormat[] = ["json", "logpush"];

/**
 * Returns the options for reading logs.
 *
 * @throws {ReplayError} if options do not fit together
 */
export function checkedLogOptions(
  files: readonly string[],
  options: LogCommandOptions,
): LogOptions {
  const { format, host, map } = options;
  if (map && format) checkMap([format]);
  if (host !== undefined && hostName(host) === undefined) {
    throw new ReplayError(
      1,
      `--host ${printable(host)}: this is not a host name. Allowed: a name such as api.example.com.`,
    );
  }
  checkRepetitions(files);
  try {
    return logOptionsOf(files, options);
  } catch (error) {
    throw error instanceof LogError ? new ReplayError(1, error.message) : error;
  }
}

/**
 * Checks that `--map` is of use for logs whose formats are recognised.
 *
 * @throws {ReplayError} if no log has fields
 */
export function checkMapOf({ map }: LogOptions, { formats, facts }: Logs): void {
  // An empty log has no format.
  if (map && (facts.ip || facts.status)) checkMap(formats);
}

function checkMap(formats: readonly LogFormat[]): void {
  if (formats.some((format) => MAPPED.includes(format))) return;
  const names = [...new Set(formats)].join(" and ");
  throw new ReplayError(
    1,
    `--map names fields of JSON lines, but the format of the logs is ${names}, which has no other fields. Write JSON lines to the log, or leave --map out.`,
  );
}

/** The requests of a file that is named twice would count twice. */
function checkRepetitions(files: readonly string[]): void {
  const known = new Set<string>();
  for (const file of files) {
    const path = file === "-" ? file : realPathOf(file);
    // For the standard input there is another message.
    if (known.has(path) && file !== "-") {
      throw new ReplayError(
        1,
        `${printable(file)} is named twice, so its requests would count twice. Name each log once.`,
      );
    }
    known.add(path);
  }
}

function realPathOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
}

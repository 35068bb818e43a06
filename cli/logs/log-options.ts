import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { durationUpTo } from "../../src/config/duration.ts";
import { parseIsoTime } from "../../src/config/iso-time.ts";
import { fieldMap } from "./field-map.ts";
import { hostName } from "./host-name.ts";
import { LogError } from "./log-error.ts";
import { LOG_FORMATS, type LogFormat } from "./log-format.ts";
import type { LogOptions } from "./open-logs.ts";

/** The highest value of `--max-delay`, in seconds: the lines of that time are kept in memory. */
const MAX_DELAY_SECONDS = 86_400;

/** The options of `weir replay` and `weir suggest` about logs, as commander parses them. */
export interface LogCommandOptions {
  readonly format?: LogFormat;
  readonly map?: ReadonlyMap<string, string>;
  readonly host?: string;
  readonly missingAsAbsent?: true;
  /** In milliseconds. */
  readonly maxDelay: number;
  /** Milliseconds since the Unix epoch. */
  readonly from?: number;
  readonly to?: number;
}

/** Adds the argument LOG… and the options about logs to a command. */
export function withLogOptions(command: Command): Command {
  return command
    .argument("<log...>", "access logs, plain or compressed with gzip or zstd; - is standard input")
    .addOption(
      new Option("--format <format>", "the logs' format (default: recognised)").choices(
        LOG_FORMATS,
      ),
    )
    .option(
      "--map <fact=field>",
      "for JSON lines: the field of a fact, such as ip=client.address; repeat it, or separate by commas",
      fieldOfFact,
    )
    .option("--host <name>", "the host of all requests, if the log does not state it")
    .addOption(
      new Option("--max-delay <time>", "how far lines may be out of order, such as 30s or 5m")
        .argParser(delay)
        .default(delay("1m"), "1m"),
    )
    .option("--from <time>", "only requests from this time, such as 2026-11-22T08:00Z", time)
    .option("--to <time>", "only requests before this time", time);
}

/**
 * Returns the options for `openLogs`.
 *
 * @param files the values of the argument LOG…
 * @throws {LogError} if `--to` is not after `--from`, if a file is named twice, or if the host is no host name
 */
export function logOptionsOf(
  files: readonly string[],
  { format, map, host, missingAsAbsent, maxDelay, from, to }: LogCommandOptions,
): LogOptions {
  if (from !== undefined && to !== undefined && from >= to) {
    throw new LogError("--to must be a later time than --from.");
  }
  if (files.indexOf("-") !== files.lastIndexOf("-")) {
    throw new LogError("- is standard input, which can be read only once.");
  }
  const paths = files.map((file) => (file === "-" ? file : resolve(file)));
  const twice = files.find((_, index) => paths.indexOf(paths[index] as string) !== index);
  if (twice !== undefined) {
    throw new LogError(`${twice} is named twice: its requests would count twice.`);
  }
  if (host !== undefined && hostName(host) === undefined) {
    throw new LogError("--host is no host name. Allowed: a name such as example.com.");
  }
  return { files, format, map, host, missingAsAbsent, maxDelayMs: maxDelay, from, to };
}

/** Adds the pairs of one `--map` to those of the ones before it. */
function fieldOfFact(
  text: string,
  before: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, string> {
  const fields = new Map(before);
  for (const pair of text.split(",")) {
    const at = pair.indexOf("=");
    const [fact, field] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    if (at === -1 || fact === "" || field === "") {
      throw new InvalidArgumentError("Allowed: FACT=FIELD, such as ip=client.address.");
    }
    if (fields.has(fact)) {
      throw new InvalidArgumentError(`${fact} has two fields. Name one.`);
    }
    fields.set(fact, field);
  }
  try {
    fieldMap(fields);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return fields;
}

/** @returns milliseconds */
function delay(text: string): number {
  if (/^0s?$/.test(text)) return 0;
  const seconds = durationUpTo(MAX_DELAY_SECONDS, /^\d{1,8}$/.test(text) ? Number(text) : text);
  if (seconds !== undefined) return seconds * 1000;
  throw new InvalidArgumentError('Allowed: 0, or a time from "1s" to "1d", such as 30s or 5m.');
}

/** A day, or a time with its zone. */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** @returns milliseconds since the Unix epoch */
function time(text: string): number {
  const at = TIME.test(text) ? parseIsoTime(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new InvalidArgumentError(
    "Allowed: a time with its zone, such as 2026-11-22T08:00Z, or a day in UTC, such as 2026-11-22.",
  );
}

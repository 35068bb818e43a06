import { readPrefix } from "../../src/config/bindings.ts";
import type { Config } from "../../src/config/schema.ts";
import { findToken, readUrl } from "../admin/connection.ts";
import { CommandFailure } from "../command-failure.ts";
import { onInterruption } from "../interruption.ts";
import { requireConfig } from "../load-config.ts";
import { examine } from "./examine.ts";
import {
  type DoctorFinding,
  exitCodeOf,
  jsonReport,
  type Subject,
  textReport,
} from "./findings.ts";
import { readSettings, type Setting, type Settings } from "./settings.ts";
import { examineWorker } from "./worker.ts";

/** The options of the command `doctor`. */
export interface DoctorOptions {
  readonly config: string;
  readonly wrangler?: string;
  readonly env?: string;
  readonly at?: string;
  readonly json?: true;
  readonly strict?: true;
}

/** The maximum duration of a run, in milliseconds. */
const MAX_RUN_MS = 120_000;

/**
 * Examines a database or a deployed Worker, and prints the findings.
 *
 * @returns the exit code
 */
export async function runDoctor(options: DoctorOptions): Promise<number> {
  const { at } = options;
  // A Worker at --at has its own configuration, so this command loads none for it.
  const examineSubject =
    at === undefined ? await databaseExaminer(options) : await workerExaminer(at, options);
  const stopping = new AbortController();
  const timer = setTimeout(
    () => stopping.abort(`the run took more than ${MAX_RUN_MS / 1000} s`),
    MAX_RUN_MS,
  );
  const interruption = onInterruption((reason) => stopping.abort(reason));
  try {
    const { subject, findings } = await examineSubject(stopping.signal);
    console.log(options.json ? jsonReport(subject, findings) : textReport(subject, findings));
    return interruption.exitCode() ?? exitCodeOf(findings, options.strict === true);
  } finally {
    clearTimeout(timer);
    interruption[Symbol.dispose]();
  }
}

type Examiner = (stop: AbortSignal) => Promise<{ subject: Subject; findings: DoctorFinding[] }>;

async function workerExaminer(at: string, options: DoctorOptions): Promise<Examiner> {
  const url = readUrl(at, "--at");
  const token = await findToken(options);
  return (stop) => examineWorker(url, token, stop);
}

async function databaseExaminer(options: DoctorOptions): Promise<Examiner> {
  const config = await requireConfig(options.config);
  const settings = await readSettings(options.config, options.env, options.wrangler);
  const url = settings("UPSTASH_REDIS_REST_URL");
  const store = config.store ?? (url ? "upstash" : "durable-object");
  if (store !== "upstash") {
    throw new CommandFailure(
      2,
      `${noDatabase(config, store)} To examine the store of a deployed Worker, run weir doctor --at <url>.`,
    );
  }
  const token = settings("UPSTASH_REDIS_REST_TOKEN");
  if (!url || !token) {
    const name = url ? "UPSTASH_REDIS_REST_TOKEN" : "UPSTASH_REDIS_REST_URL";
    throw new CommandFailure(
      2,
      `${name} is not set. Set it as an environment variable or in .dev.vars; a deployed secret cannot be read back.`,
    );
  }
  const { prefix, source } = effectivePrefix(config, settings);
  const subject = databaseSubject(url, token, prefix, source);
  return async (stop) => ({
    subject,
    findings: await examine({
      url: url.value,
      token: token.value,
      config: { ...config, prefix },
      stop,
    }),
  });
}

function noDatabase({ store: chosen }: Config, store: string): string {
  if (store === "memory") return "The store is memory, so there is no database to examine.";
  return chosen === "durable-object"
    ? "The store is Durable Objects, so there is no database to examine."
    : "UPSTASH_REDIS_REST_URL is not set and the configuration sets no store, so the store is Durable Objects, and there is no database to examine. If the Worker uses Upstash Redis, set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN as environment variables or in .dev.vars.";
}

/** @throws {CommandFailure} if the Worker would refuse the prefix too */
function effectivePrefix(config: Config, settings: Settings): { prefix: string; source: string } {
  const name = "WEIR_PREFIX";
  const setting = settings.raw(name);
  const prefix = readPrefix(config, { [name]: setting?.value });
  if (typeof prefix !== "string") {
    throw new CommandFailure(
      2,
      `The Worker is misconfigured and decides nothing: ${prefix.fault} (${setting?.source})`,
    );
  }
  return { prefix, source: settings(name)?.source ?? "the configuration" };
}

function databaseSubject(url: Setting, token: Setting, prefix: string, source: string): Subject {
  const host = URL.canParse(url.value) ? new URL(url.value).host : "(not a URL)";
  return {
    noun: "The database",
    headline: `Database ${host} (URL from ${url.source}, token from ${token.source}), prefix ${prefix} (from ${source}).`,
    fields: {
      database: host,
      urlSource: url.source,
      tokenSource: token.source,
      prefix,
      prefixSource: source,
    },
    secrets: [token.value],
  };
}

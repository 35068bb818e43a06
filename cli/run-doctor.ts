import { readPrefix } from "../src/config/bindings.ts";
import type { Config } from "../src/config/schema.ts";
import { TOKEN_NAMES } from "./admin/connection.ts";
import { CommandFailure } from "./command-failure.ts";
import { examine } from "./doctor/examine.ts";
import { exitCodeOf, jsonReport, type Subject, textReport } from "./doctor/findings.ts";
import { readSettings, type Setting, type Settings } from "./doctor/settings.ts";
import { examineWorker } from "./doctor/worker.ts";
import { onInterruption } from "./interruption.ts";
import { requireConfig } from "./load-config.ts";

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
  const config = await requireConfig(options.config);
  const settings = await readSettings(options.config, options.env, options.wrangler);
  const stopping = new AbortController();
  const timer = setTimeout(
    () => stopping.abort(`the run took more than ${MAX_RUN_MS / 1000} s`),
    MAX_RUN_MS,
  );
  const interruption = onInterruption((reason) => stopping.abort(reason));
  try {
    const { subject, findings } = await (options.at === undefined
      ? doctorDatabase(config, settings, stopping.signal)
      : doctorWorker(options.at, settings, stopping.signal));
    console.log(options.json ? jsonReport(subject, findings) : textReport(subject, findings));
    return interruption.exitCode() ?? exitCodeOf(findings, options.strict === true);
  } finally {
    clearTimeout(timer);
    interruption[Symbol.dispose]();
  }
}

async function doctorDatabase(config: Config, settings: Settings, stop: AbortSignal) {
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
  const findings = await examine({
    url: url.value,
    token: token.value,
    config: { ...config, prefix },
    stop,
  });
  return { subject: databaseSubject(url, token, prefix, source), findings };
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

async function doctorWorker(at: string, settings: Settings, stop: AbortSignal) {
  // As in the commands for operators, an environment variable comes before all files.
  const name = TOKEN_NAMES.find((each) => process.env[each]?.trim()) ?? TOKEN_NAMES.find(settings);
  const token = name && settings(name);
  if (!token) {
    throw new CommandFailure(
      2,
      `${TOKEN_NAMES.join(" is not set, nor is ")}. Set one of them as an environment variable, to the same text as the secret of the deployed Worker.`,
    );
  }
  return await examineWorker({ at, name, token, stop });
}

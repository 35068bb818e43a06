import type { Command } from "commander";
import type { Config } from "../src/config/schema.ts";
import { readPrefix } from "../src/config/store-binding.ts";
import { examine } from "./doctor/examine.ts";
import { onInterruption } from "./doctor/interruption.ts";
import { exitCodeOf, jsonReport, type Subject, textReport } from "./doctor/report.ts";
import { readSettings, type Setting, type Settings, SettingsError } from "./doctor/settings.ts";
import { examineWorker } from "./doctor/worker.ts";
import { loadConfig } from "./load-config.ts";

interface DoctorOptions {
  readonly config: string;
  readonly wrangler?: string;
  readonly env?: string;
  readonly at?: string;
  readonly json?: true;
  readonly strict?: true;
}

/** Thrown if there is nothing to examine. The message gives the reason. */
class CannotExamine extends Error {}

/** The maximum duration of a run, in milliseconds. */
const MAX_RUN_MS = 120_000;
const NOTHING_EXAMINED = 2;

const EXIT_CODES = `
Exit codes:
  0    no faults; with --strict also no warnings
  1    faults; with --strict also warnings
  2    nothing was examined, for example because there are no credentials
  130  ended by Ctrl-C; 129 by SIGHUP, 143 by SIGTERM. The command removes its keys first

The credentials are UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN. With --at, it is
WEIR_ADMIN_TOKEN. They are read from environment variables, then from .dev.vars.NAME, .dev.vars or
.env files as wrangler reads them, and then from the vars in wrangler's configuration.
docs/doctor.md explains each finding.`;

/**
 * Adds the command `doctor`, which examines the database that a configuration uses: credentials,
 * round trip, clocks, script commands, eviction, memory and keys. With `--at`, a deployed Worker
 * examines its own store.
 */
export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("Examines the database of a deployment, and gives advice for each finding.")
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option("--wrangler <file>", "wrangler's configuration (default: the one beside the rules)")
    .option("--env <name>", 'the environment of wrangler\'s configuration; "" for the top level')
    .option("--at <url>", "let the Worker at this URL examine its own store")
    .option("--json", "print JSON")
    .option("--strict", "exit with 1 if there are warnings")
    .addHelpText("after", EXIT_CODES)
    .action(async (options: DoctorOptions) => {
      try {
        process.exitCode = await runDoctor(options);
      } catch (error) {
        if (!(error instanceof CannotExamine || error instanceof SettingsError)) throw error;
        if (options.json) {
          console.log(JSON.stringify({ ok: false, error: error.message, findings: [] }, null, 2));
        } else {
          console.error(error.message);
        }
        process.exitCode = NOTHING_EXAMINED;
      }
    });
}

/** @returns the exit code */
async function runDoctor(options: DoctorOptions): Promise<number> {
  const config = await readConfig(options.config);
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

async function readConfig(file: string): Promise<Config> {
  const loaded = await loadConfig(file);
  if (loaded.kind === "valid") return loaded.config;
  const reason =
    loaded.kind === "unreadable" ? loaded.error : "It has faults; weir check prints them.";
  throw new CannotExamine(`${file} could not be used. ${reason}`);
}

async function doctorDatabase(config: Config, settings: Settings, stop: AbortSignal) {
  const url = settings("UPSTASH_REDIS_REST_URL");
  const store = config.store ?? (url ? "upstash" : "durable-object");
  if (store !== "upstash") {
    throw new CannotExamine(
      `${noDatabase(config, store)} To examine the store of a deployed Worker, run weir doctor --at <url>.`,
    );
  }
  const token = settings("UPSTASH_REDIS_REST_TOKEN");
  if (!url || !token) {
    const name = url ? "UPSTASH_REDIS_REST_TOKEN" : "UPSTASH_REDIS_REST_URL";
    throw new CannotExamine(
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

/** @throws {CannotExamine} if the Worker would refuse the prefix too */
function effectivePrefix(config: Config, settings: Settings): { prefix: string; source: string } {
  const name = "WEIR_PREFIX";
  const setting = settings.raw(name);
  const prefix = readPrefix(config, { [name]: setting?.value });
  if (typeof prefix !== "string") {
    throw new CannotExamine(
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
  const token = settings("WEIR_ADMIN_TOKEN");
  if (!token) {
    throw new CannotExamine(
      "WEIR_ADMIN_TOKEN is not set. Set it as an environment variable, to the same text as the secret of the deployed Worker.",
    );
  }
  return await examineWorker({ at, token, stop });
}

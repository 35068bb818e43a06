import type { Command } from "commander";
import type { DoctorOptions } from "./doctor/run-doctor.ts";
import { CODES_PAGE } from "./finding.ts";
import { withoutNodeEnv } from "./process.ts";

const EXIT_CODES = `
Exit codes:
  0    no faults; with --strict also no warnings
  1    faults; with --strict also warnings; or a wrong option
  2    nothing was examined, for example because there are no credentials
  130  ended by Ctrl-C; 129 by SIGHUP, 143 by SIGTERM. The command removes its keys first

The credentials are UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN. With --at, it is
WEIR_ADMIN_TOKEN or WEIR_ADMIN_READ_TOKEN. They are read from environment variables, then from .dev.vars.NAME, .dev.vars or
.env files as wrangler reads them, and then from the vars in wrangler's configuration.
Each code: ${CODES_PAGE}`;

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
      const { runDoctor } = await withoutNodeEnv(() => import("./doctor/run-doctor.ts"));
      process.exitCode = await runDoctor(options);
    });
}

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Finding, found } from "../finding.ts";
import type { Deployment } from "./deployment.ts";

/** The environments of wrangler's configuration that a check covers. */
export interface Selection {
  /** The name of the only environment to check; undefined to check all of them. `""` is the top level. */
  readonly environment: string | undefined;
  /** Whether wrangler runs the check before a deploy, and the check does not know the deployed environment. */
  readonly isUnnamedBuild: boolean;
}

/**
 * Selects the environments to check. The first of these values that is set applies: the option
 * `--env` of this command, the option `--env` of the wrangler process that runs this command, and the
 * variable CLOUDFLARE_ENV.
 *
 * @param option the value of `--env`; undefined if it is not given
 * @param variables the environment variables of the process
 * @param wrangler the options of wrangler; undefined if they are unknown
 */
export function selectEnvironments(
  option: string | undefined,
  { CLOUDFLARE_ENV, WRANGLER_COMMAND }: NodeJS.ProcessEnv,
  wrangler: WranglerOptions | undefined,
): Selection {
  const environment = option ?? (wrangler?.environment || CLOUDFLARE_ENV || wrangler?.environment);
  return { environment, isUnnamedBuild: environment === undefined && Boolean(WRANGLER_COMMAND) };
}

/** Whether a selection includes a deployment. */
export function isSelected({ environment }: Selection, deployment: Deployment): boolean {
  return environment === undefined || environment === (deployment.environment ?? "");
}

/** Returns a fault if the selected environment does not exist. */
export function unknownEnvironment(
  selection: Selection,
  deployments: readonly Deployment[],
): Finding[] {
  const [first] = deployments;
  if (!first || deployments.some((each) => isSelected(selection, each))) return [];
  const names = deployments.flatMap(({ environment }) => environment ?? []);
  const choice = names.length === 0 ? "Leave out --env" : `Name one of ${names.join(", ")}`;
  const fault = found(
    "environment-unknown",
    "env",
    `There is no environment ${selection.environment}`,
    `${choice}, or write --env "" for the top level`,
  );
  return [{ ...fault, file: first.file }];
}

/**
 * Returns whether faults stop the command. If a build does not know its environment, only faults
 * that concern every environment stop it: a fault of `staging` must not stop a deploy of `production`.
 */
export function areFaultsFatal(
  faults: readonly Finding[],
  { isUnnamedBuild }: Selection,
  deployments: readonly Deployment[],
): boolean {
  if (!isUnnamedBuild) return faults.length > 0;
  const [first] = deployments;
  if (faults.some(({ file }) => file !== first?.file)) return true;
  return (
    deployments.length > 0 &&
    deployments.every((each) => faults.some(({ environment }) => environment === each.environment))
  );
}

/**
 * Whether a deployment is the top level of a file from which only environments are deployed. Such a top
 * level has neither a route nor a host on workers.dev, so it gets no requests.
 */
export function isTemplate(deployment: Deployment, all: readonly Deployment[]): boolean {
  const { environment, workersDev, routes } = deployment;
  return environment === undefined && workersDev === false && routes.length === 0 && all.length > 1;
}

/** The options of the wrangler process that started this process as its build. */
export interface WranglerOptions {
  /** The value of `--env`; `""` if the option is not given. */
  readonly environment: string;
  /** The value of `--config`; undefined if the option is missing or repeated. */
  readonly config: string | undefined;
}

interface Process {
  readonly parent: number;
  readonly argv: readonly string[];
}

/**
 * The maximum number of parent processes to examine: shells, npm and npx may be between wrangler and
 * the command.
 */
const MAX_ANCESTORS = 10;

/**
 * Returns the options of the wrangler process that started this process. Wrangler passes only its
 * command to its build (WRANGLER_COMMAND), not the environment that it deploys. So this function
 * looks for wrangler among the parent processes.
 *
 * @param pid the process to begin with
 * @returns undefined if wrangler is not found, for example on Windows
 */
export function wranglerOptions(pid: number = process.ppid): WranglerOptions | undefined {
  let next = pid;
  for (let level = 0; level < MAX_ANCESTORS && next > 1; level++) {
    const found = readProcess(next);
    if (!found) return undefined;
    const { parent, argv } = found;
    const script = argv.findIndex((text) => /(^|[\\/])wrangler(-dist[\\/]cli)?(\.js)?$/.test(text));
    if (script !== -1) return optionsIn(argv.slice(script + 1));
    next = parent;
  }
  return undefined;
}

function optionsIn(args: readonly string[]): WranglerOptions {
  const { values } = parseArgs({
    args: [...args],
    // Wrangler has many options besides these two.
    strict: false,
    options: {
      env: { type: "string", short: "e" },
      config: { type: "string", short: "c", multiple: true },
    },
  });
  const [config, ...others] = values.config ?? [];
  return {
    environment: typeof values.env === "string" ? values.env.replace(/^=/, "") : "",
    config:
      typeof config === "string" && others.length === 0 ? config.replace(/^=/, "") : undefined,
  };
}

/** Reads the command line of a process, from /proc on Linux and with `ps` on macOS. */
function readProcess(pid: number): Process | undefined {
  try {
    if (process.platform === "linux") {
      // The second field is the name of the program, which may contain blanks and brackets.
      const [, fields = ""] = /\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      return { parent: Number(fields.split(" ")[1]), argv };
    }
    if (process.platform === "win32") return undefined;
    const line = execFileSync("ps", ["-o", "ppid=,command=", "-p", String(pid)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [parent, ...argv] = line.trim().split(/\s+/);
    return { parent: Number(parent), argv };
  } catch {
    return undefined;
  }
}

import {
  KEY_SECRET,
  MODE_VAR,
  readDeploymentMode,
  secretEffects,
} from "../../src/config/bindings.ts";
import type { Config } from "../../src/config/schema.ts";
import { printableSecretName } from "../../src/config/tiers.ts";
import type { Source } from "../doctor/findings.ts";
import { localSecrets } from "../doctor/local-secrets.ts";
import type { Finding, LocalFinding } from "../finding.ts";
import {
  type Deployment,
  isSecretListed,
  TOKEN_SECRET,
  textVarOf,
  URL_SECRET,
} from "./deployment.ts";
import { secretCommand } from "./notation.ts";
import { storeOf } from "./worker.ts";
import type { WranglerOptions } from "./wrangler-process.ts";

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
  return [
    {
      code: "environment-unknown",
      severity: "fault",
      file: first.file,
      path: "env",
      message: `There is no environment ${selection.environment}`,
      cure:
        names.length === 0
          ? 'Leave out --env, or write --env "" for the top level'
          : `Name one of ${names.join(", ")}, or write --env "" for the top level`,
    },
  ];
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

/** Secrets that Weir reads with any rules. */
const OWN_SECRETS = [TOKEN_SECRET, KEY_SECRET, "WEIR_ADMIN_TOKEN", "WEIR_ADMIN_READ_TOKEN"];

/** Returns warnings about secrets that may be missing, and about secrets that are written in the file. */
export function secretFindings(
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
): LocalFinding[] {
  const { jwt } = config;
  const unread = jwt && "secret" in jwt && !readsClaims(config) ? jwt.secret : undefined;
  const named = [...secretEffects(config).keys()].filter((name) => name !== unread);
  const upstash = storeOf(config, deployment) === "upstash" ? [URL_SECRET, TOKEN_SECRET] : [];
  const unlisted = [...upstash, ...named].filter(
    (name) => !isSecretListed(deployment, name) && textVarOf(deployment, name) === undefined,
  );
  const written = [...OWN_SECRETS, ...named].filter((name) => textVarOf(deployment, name));
  const { environment } = deployment;
  const findings: (LocalFinding | false)[] = [
    !isTemplate(deployment, all) &&
      unlisted.length > 0 && {
        code: "secret-not-required",
        severity: "warning",
        path: "secrets.required",
        message: `Weir needs ${listOf(unlisted)}, but a deploy without ${unlisted.length === 1 ? "it" : "them"} would succeed`,
        cure: `Add ${unlisted.map((name) => JSON.stringify(printableSecretName(name))).join(", ")} to secrets.required, and set ${unlisted.length === 1 ? "it" : "each"} with ${commandFor(unlisted, environment)}`,
      },
    written.length > 0 && {
      code: "secret-in-vars",
      severity: "warning",
      path: "vars",
      message: `${listOf(written)} in vars can be read by everyone who can read the file`,
      cure: `Remove ${written.length === 1 ? "it" : "them"} from vars. For the deployed Worker, run ${commandFor(written, environment)}, and add the name to secrets.required. For wrangler dev, write it in .dev.vars`,
    },
  ];
  return findings.filter((finding) => finding !== false);
}

/** Whether a rule needs a verified token. Without such a rule, Weir never reads the secret of `jwt`. */
function readsClaims({ rules }: Config): boolean {
  return rules.some(({ key, tiers }) =>
    [...key, ...(tiers?.by ?? [])].flat().some(({ kind }) => kind === "jwt"),
  );
}

function commandFor(names: readonly string[], environment: string | undefined): string {
  const [first = "NAME", ...others] = names;
  return secretCommand(others.length === 0 ? printableSecretName(first) : "NAME", environment);
}

function listOf(names: readonly string[]): string {
  return names.map(printableSecretName).join(", ");
}

const ONLY_DEV = "A deployed Worker does not read this file";

/**
 * Warns of the var WEIR_MODE in `.dev.vars` and `.env`, which `wrangler dev` reads. It is no fault,
 * because these files have no effect on a deploy.
 *
 * @param variables the environment variables, which can turn the `.env` files off
 */
export function devModeWarnings(
  deployments: readonly Deployment[],
  variables: NodeJS.ProcessEnv,
): Finding[] {
  const found = deployments.flatMap((deployment) => warningsOf(deployment, variables));
  // Environments without a file of their own share one file.
  return found.filter((each, index) => found.findIndex(({ file }) => file === each.file) === index);
}

function warningsOf(deployment: Deployment, variables: NodeJS.ProcessEnv): Finding[] {
  const { folder, environment, requiredSecrets } = deployment;
  // With this list, wrangler passes no other names of the files to the Worker.
  if (requiredSecrets && !requiredSecrets.includes(MODE_VAR)) return [];
  return sourcesIn(folder, environment, variables).flatMap(({ label, values }): Finding[] => {
    const mode = readDeploymentMode(values);
    if (mode === "enforce") return [];
    const finding = { severity: "warning", file: label(MODE_VAR), path: MODE_VAR } as const;
    if (mode === undefined) {
      return [
        {
          ...finding,
          code: "mode-invalid",
          message: `${MODE_VAR} is not "enforce", "shadow" or "off", so wrangler dev enforces the rules. ${ONLY_DEV}`,
          cure: `Write ${MODE_VAR}=shadow or ${MODE_VAR}=off, or remove the line`,
        },
      ];
    }
    const effect = mode === "off" ? "no rule applies" : "no request is denied";
    return [
      {
        ...finding,
        code: "rules-not-enforced",
        message: `${MODE_VAR} is "${mode}", so ${effect} in wrangler dev. ${ONLY_DEV}`,
        cure: "Remove the line, unless the rules shall deny no request in wrangler dev",
      },
    ];
  });
}

/** Returns the vars of the local files; none if a file cannot be read. */
function sourcesIn(
  folder: string,
  environment: string | undefined,
  variables: NodeJS.ProcessEnv,
): Source[] {
  try {
    return localSecrets(folder, environment, variables);
  } catch {
    return [];
  }
}

import { type CheckFinding, found } from "../finding.ts";
import type { Deployment } from "./deployment.ts";

/** The environments of wrangler's configuration that a check covers. */
export interface Selection {
  /** The name of the only environment to check; undefined to check all of them. `""` is the top level. */
  readonly environment: string | undefined;
  /** Whether wrangler runs the check before a deploy, but does not say of which environment. */
  readonly isUnnamedBuild: boolean;
}

/**
 * Selects the environments to check: by the option `--env` of this command, or else by the variable
 * CLOUDFLARE_ENV.
 *
 * @param option the value of `--env`; undefined if it is not given
 * @param variables the environment variables of the process
 */
export function selectEnvironments(
  option: string | undefined,
  { CLOUDFLARE_ENV, WRANGLER_COMMAND }: NodeJS.ProcessEnv,
): Selection {
  const environment = option ?? (CLOUDFLARE_ENV || undefined);
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
): CheckFinding[] {
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
 * Returns whether faults stop the command. If a build does not know its environment, they stop it only if Weir's
 * configuration or every environment has one: a fault of `staging` must not stop a deploy of `production`.
 */
export function areFaultsFatal(
  faults: readonly CheckFinding[],
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
 * Whether a deployment is a top level that only has settings for environments. It gets no requests, because it has
 * neither a route nor a host on workers.dev.
 */
export function isTemplate(deployment: Deployment, all: readonly Deployment[]): boolean {
  const { environment, workersDev, routes } = deployment;
  return environment === undefined && workersDev === false && routes.length === 0 && all.length > 1;
}

import { MODE_VAR } from "../../src/config/binding-names.ts";
import { readDeploymentMode } from "../../src/config/deployment-mode.ts";
import { localSecrets } from "../doctor/local-secrets.ts";
import type { Source } from "../doctor/source.ts";
import type { Finding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";

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

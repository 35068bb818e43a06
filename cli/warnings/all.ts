import type { Config } from "../../src/config/schema.ts";
import { loadDeployments } from "../load-wrangler.ts";
import { deploymentWarnings } from "./deployment.ts";
import { ruleWarnings } from "./rules.ts";
import type { Warning } from "./warning.ts";

/**
 * Every way around that a valid configuration leaves, as far as can be told from it and from
 * wrangler's beside it.
 *
 * @param file where the configuration was read
 */
export async function warningsOf(config: Config, file: string): Promise<Warning[]> {
  if (config.rules.length === 0) return [];
  const deployments = await loadDeployments(file);
  const deployed = Array.isArray(deployments)
    ? deployments.flatMap((deployment) => deploymentWarnings(config, deployment))
    : [deployments];
  return [...ruleWarnings(config), ...deployed];
}

import type { Config } from "../../src/config/schema.ts";
import { loadDeployments } from "../load-wrangler.ts";
import { deploymentWarnings } from "./deployment.ts";
import { ruleWarnings } from "./rules.ts";
import type { Warning } from "./warning.ts";

/**
 * Returns all warnings about a valid configuration. Some are about the rules. The others are about
 * wrangler's configuration, which is read from the folder of the file.
 *
 * @param file the path of the configuration
 */
export async function warningsOf(config: Config, file: string): Promise<Warning[]> {
  if (config.rules.length === 0) return [];
  const deployments = await loadDeployments(file);
  const deployed = Array.isArray(deployments)
    ? deployments.flatMap((deployment) => deploymentWarnings(config, deployment))
    : [deployments];
  return [...ruleWarnings(config), ...deployed];
}

import type { Config } from "../../src/config/schema.ts";
import type { Finding, LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { secretFindings } from "./environment.ts";
import {
  originFindings,
  privateOriginWarnings,
  routeWarnings,
  sameRouteWarnings,
  sharedPrefixWarnings,
} from "./routes.ts";
import {
  controlFindings,
  exposureWarnings,
  modeFindings,
  storeFindings,
  workerFindings,
} from "./worker.ts";

/**
 * Checks whether a configuration can work in each of its deployments.
 *
 * @param deployments all environments of wrangler's configuration
 * @param checks selects the environments to check; the others are only compared with these
 */
export function checkDeployments(
  config: Config,
  deployments: readonly Deployment[],
  checks: (deployment: Deployment) => boolean,
): Finding[] {
  const findings = deployments.filter(checks).flatMap((deployment) => {
    const found: LocalFinding[] = [
      ...deployment.misplaced,
      ...workerFindings(config, deployment),
      ...storeFindings(config, deployment),
      ...controlFindings(deployment),
      ...modeFindings(deployment),
      ...originFindings(config, deployment, deployments),
      ...privateOriginWarnings(config, deployment, deployments),
      ...secretFindings(config, deployment, deployments),
      ...exposureWarnings(deployment),
      ...routeWarnings(config, deployment),
    ];
    const { file, environment } = deployment;
    return found.map((finding): Finding => ({ ...finding, file, environment }));
  });
  return [
    ...findings,
    ...sameRouteWarnings(deployments, checks),
    ...sharedPrefixWarnings(config, deployments, checks),
  ];
}

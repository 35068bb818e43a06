import type { Config } from "../../src/config/schema.ts";
import type { CheckFinding, LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { originFindings } from "./origin.ts";
import { routeFindings, sameRouteWarnings } from "./routes.ts";
import { secretWarnings, sharedPrefixWarnings, varFindings } from "./vars.ts";
import {
  classFindings,
  controlFindings,
  exposureWarnings,
  storeFindings,
  workerFindings,
} from "./worker.ts";

/** A check of one deployment. The last argument is all deployments; for COMPARISONS, those to compare with. */
type Check = (
  config: Config,
  deployment: Deployment,
  all: readonly Deployment[],
) => Iterable<LocalFinding>;

/** The checks of a deployment, in the order of their findings in the report. */
const CHECKS: readonly Check[] = [
  workerFindings,
  storeFindings,
  controlFindings,
  classFindings,
  varFindings,
  secretWarnings,
  originFindings,
  exposureWarnings,
  routeFindings,
];

/** The checks that compare a deployment with others. */
const COMPARISONS: readonly Check[] = [sameRouteWarnings, sharedPrefixWarnings];

/**
 * Checks whether a configuration can work in each of its deployments.
 *
 * @param deployments all environments of wrangler's configuration
 * @param isChecked selects the environments to check; the remaining environments are only compared with them
 */
export function checkDeployments(
  config: Config,
  deployments: readonly Deployment[],
  isChecked: (deployment: Deployment) => boolean,
): CheckFinding[] {
  return deployments.flatMap((deployment, index) => {
    if (!isChecked(deployment)) return [];
    // Two checked environments are compared only once.
    const others = deployments.filter(
      (each, position) => position < index || (position > index && !isChecked(each)),
    );
    const findings = [
      ...CHECKS.flatMap((check) => [...check(config, deployment, deployments)]),
      ...COMPARISONS.flatMap((check) => [...check(config, deployment, others)]),
    ];
    const { file, environment } = deployment;
    return findings.map((finding): CheckFinding => ({ ...finding, file, environment }));
  });
}

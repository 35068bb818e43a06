import type { Finding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn } from "./notation.ts";
import { patternOf } from "./routes.ts";

/**
 * Warnings about environments with the same route. Cloudflare gives a route to one Worker only, and
 * each environment is a Worker of its own.
 */
export function sameRouteWarnings(
  deployments: readonly Deployment[],
  checks: (deployment: Deployment) => boolean,
): Finding[] {
  return deployments.flatMap((deployment, index) => {
    const own = new Set(deployment.routes.map(textOf));
    // Each pair is reported once, unless only one of the two environments is checked.
    const others = deployments.filter(
      (each, position) => position < index || (position > index && !checks(each)),
    );
    const other = others.find(({ routes }) => routes.some((route) => own.has(textOf(route))));
    const shared = other?.routes.find((route) => own.has(textOf(route)));
    if (!shared || !checks(deployment)) return [];
    const place = other?.environment ? `the environment ${other.environment}` : "the top level";
    const { file, environment } = deployment;
    return [
      {
        code: "same-route",
        severity: "warning",
        file,
        environment,
        path: "routes",
        message: `${shared.pattern} also belongs to ${place}. Only one of the two Workers can have it, and environments inherit routes`,
        cure: `Write other routes here, or ${settingIn(file, "routes", [])}`,
      },
    ];
  });
}

function textOf(route: Deployment["routes"][number]): string {
  const { host, path } = patternOf(route);
  return `${host}${path}`;
}

import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn } from "./notation.ts";

/**
 * Returns warnings about settings that let requests or responses bypass Weir or the zone's firewall.
 */
export function exposureWarnings(deployment: Deployment): LocalFinding[] {
  const { file, routes, workersDev, previewUrls, cache, compatibilityFlags, isPages } = deployment;
  // By default, workers_dev is on if there is no route, and preview_urls has the value of workers_dev.
  const answersOnWorkersDev = workersDev ?? (routes.length === 0 && !isPages);
  const andPreviews =
    previewUrls === undefined ? ", and on a URL for each version that was uploaded" : "";
  const why = workersDev === undefined ? ", because neither workers_dev nor a route is set" : "";
  const warnings: (LocalFinding | false)[] = [
    answersOnWorkersDev && {
      code: "workers-dev",
      severity: "warning",
      path: "workers_dev",
      message: `Weir also answers on workers.dev${andPreviews}${why}: the zone's firewall and rules with hosts do not apply there`,
      cure: `Write ${settingIn(file, "workers_dev", false)}`,
    },
    previewUrls === true && {
      code: "preview-urls",
      severity: "warning",
      path: "preview_urls",
      message:
        "Every version that was ever uploaded answers on its own URL, with the rules of that version",
      cure: `Write ${settingIn(file, "preview_urls", false)}`,
    },
    cache && {
      code: "workers-cache",
      severity: "warning",
      path: "cache.enabled",
      message: "The cache answers requests before Weir runs, and may store Weir's answers",
      cure: `Write ${settingIn(file, "cache", { enabled: false })}`,
    },
    compatibilityFlags.includes("global_fetch_strictly_public") && {
      code: "strictly-public-fetch",
      severity: "warning",
      path: "compatibility_flags",
      message:
        "On a route, Weir forwards requests to the front of the zone again, not to the origin",
      cure: "Remove global_fetch_strictly_public",
    },
  ];
  return warnings.filter((warning) => warning !== false);
}

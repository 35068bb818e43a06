import type { Config } from "../../src/config/schema.ts";
import type { Deployment } from "../load-wrangler.ts";
import { routeWarnings } from "./routes.ts";
import type { Warning } from "./warning.ts";

/** Warnings about settings in wrangler's configuration. */
export function deploymentWarnings(config: Config, deployment: Deployment): Warning[] {
  const { place, routes, workersDev, previewUrls, cache, compatibilityFlags } = deployment;
  // By default, workers_dev is on if there is no route, and preview_urls has the value of workers_dev.
  const answersOnWorkersDev = workersDev ?? routes.length === 0;
  const andPreviews =
    previewUrls === undefined ? ", and on a URL for each version that was uploaded" : "";
  const why = workersDev === undefined ? ", because neither workers_dev nor a route is set" : "";
  const warnings: (Warning | false)[] = [
    answersOnWorkersDev && {
      code: "workers-dev",
      where: place("workers_dev"),
      what: `Weir also answers on workers.dev${andPreviews}${why}: the zone's firewall and rules with hosts do not apply there`,
      advice: "Set workers_dev = false",
    },
    previewUrls === true && {
      code: "preview-urls",
      where: place("preview_urls"),
      what: "Every version that was ever uploaded answers on its own URL, with the rules of that version",
      advice: "Set preview_urls = false",
    },
    cache && {
      code: "workers-cache",
      where: place("cache.enabled"),
      what: "The cache answers requests before Weir runs, and may store Weir's answers",
      advice: "Set cache.enabled = false",
    },
    compatibilityFlags.includes("global_fetch_strictly_public") && {
      code: "strictly-public-fetch",
      where: place("compatibility_flags"),
      what: "On a route, Weir forwards requests to the front of the zone again, not to the origin",
      advice: "Remove global_fetch_strictly_public",
    },
  ];
  return [...warnings.filter((warning) => warning !== false), ...routeWarnings(config, deployment)];
}

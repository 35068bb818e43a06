import type { Config } from "../../src/config/schema.ts";
import type { Deployment } from "../load-wrangler.ts";
import { routeWarnings } from "./routes.ts";
import type { Warning } from "./warning.ts";

/** What in wrangler's configuration leaves a way around the rules. */
export function deploymentWarnings(config: Config, deployment: Deployment): Warning[] {
  const { place, routes, workersDev, previewUrls, cache, compatibilityFlags } = deployment;
  // Left out, it is on where there is no route; and preview URLs that are left out follow it.
  const answersOnWorkersDev = workersDev ?? routes.length === 0;
  const andPreviews = previewUrls === undefined ? ", and on a URL for each version uploaded" : "";
  const why = workersDev === undefined ? ", since neither that is set nor a route" : "";
  const warnings: (Warning | false)[] = [
    answersOnWorkersDev && {
      code: "workers-dev",
      where: place("workers_dev"),
      what: `Weir also answers on workers.dev${andPreviews}${why}: neither the zone's firewall nor rules with hosts hold there`,
      advice: "Set workers_dev = false",
    },
    previewUrls === true && {
      code: "preview-urls",
      where: place("preview_urls"),
      what: "Every version ever uploaded answers on a URL of its own, with the rules of its time",
      advice: "Set preview_urls = false",
    },
    cache && {
      code: "workers-cache",
      where: place("cache.enabled"),
      what: "The cache answers before Weir runs, and may keep what it answers",
      advice: "Leave it off",
    },
    compatibilityFlags.includes("global_fetch_strictly_public") && {
      code: "strictly-public-fetch",
      where: place("compatibility_flags"),
      what: "On a route, what Weir forwards goes to the front of the zone again, not to its origin",
      advice: "Remove global_fetch_strictly_public",
    },
  ];
  return [...warnings.filter((warning) => warning !== false), ...routeWarnings(config, deployment)];
}

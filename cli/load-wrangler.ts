import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Warning } from "./warnings/warning.ts";

/** A route or a custom domain of the Worker. */
export interface Route {
  readonly pattern: string;
  readonly customDomain: boolean;
}

/** Where and how the Worker runs, in one environment of wrangler's configuration. */
export interface Deployment {
  /** Returns a text for messages: the name of the file, the environment and the given field. */
  readonly place: (field: string) => string;
  readonly routes: readonly Route[];
  /** Undefined if it is not set. */
  readonly workersDev: boolean | undefined;
  readonly previewUrls: boolean | undefined;
  readonly cache: boolean;
  readonly compatibilityFlags: readonly string[];
}

/** The file names of wrangler's configuration, in the order in which wrangler looks for them. */
const NAMES = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];

/**
 * Reads wrangler's configuration from the folder of a file, as wrangler reads it.
 *
 * @returns one deployment for each environment, none if the folder has no configuration; a warning
 *   if the configuration cannot be read
 */
export async function loadDeployments(file: string): Promise<Deployment[] | Warning> {
  const path = NAMES.map((name) => join(dirname(file), name)).find(existsSync);
  if (path === undefined) return [];
  try {
    // wrangler is imported only if needed, because loading it takes longer than all other work.
    const { unstable_readConfig } = await import("wrangler");
    const read = (env?: string) =>
      unstable_readConfig({ config: path, ...(env && { env }) }, { hideWarnings: true });
    const top = read();
    const environments = top.definedEnvironments ?? [];
    return [undefined, ...environments].map((env) => {
      const config = env === undefined ? top : read(env);
      const where = env === undefined ? basename(path) : `${basename(path)}, env.${env}`;
      return {
        place: (field) => `${where}: ${field}`,
        routes: [...(config.routes ?? []), ...(config.route ? [config.route] : [])].map(toRoute),
        workersDev: config.workers_dev,
        previewUrls: config.preview_urls,
        cache: config.cache?.enabled === true,
        compatibilityFlags: config.compatibility_flags,
      };
    });
  } catch (error) {
    return {
      code: "wrangler-unread",
      where: basename(path),
      what: `The file could not be read, so none of its settings were checked: ${firstLine(error)}`,
      advice: "Correct the file, or run npm install if wrangler is not installed",
    };
  }
}

function toRoute(route: string | { pattern: string; custom_domain?: boolean }): Route {
  return typeof route === "string"
    ? { pattern: route, customDomain: false }
    : { pattern: route.pattern, customDomain: route.custom_domain === true };
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n").slice(0, 2).join(" ").trim();
}

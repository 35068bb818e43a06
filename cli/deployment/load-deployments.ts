import { basename } from "node:path";
import type { Finding } from "../finding.ts";
import { type Deployment, deploymentsOf } from "./deployment.ts";
import { findWranglerFile, parseWranglerFile } from "./wrangler-file.ts";

/** The environments of wrangler's configuration, or a fault if it cannot be read. */
export type LoadedDeployments =
  | { readonly deployments: readonly Deployment[] }
  | { readonly fault: Finding };

/**
 * Reads wrangler's configuration as wrangler reads it.
 *
 * @param file the path of Weir's configuration
 * @param wranglerFile the path of wrangler's configuration; by default, the file that belongs to `file`
 * @returns one deployment for the top level and for each environment; none if there is no file
 */
export async function loadDeployments(
  file: string,
  wranglerFile: string | undefined = findWranglerFile(file),
): Promise<LoadedDeployments> {
  if (wranglerFile === undefined) return { deployments: [] };
  try {
    return {
      deployments: await deploymentsOf(wranglerFile, await parseWranglerFile(wranglerFile)),
    };
  } catch (error) {
    return {
      fault: {
        code: "wrangler-unread",
        severity: "fault",
        file: basename(wranglerFile),
        path: "",
        message: `The file cannot be read: ${error instanceof Error ? error.message : String(error)}`,
        cure: "Correct the file at this place",
      },
    };
  }
}

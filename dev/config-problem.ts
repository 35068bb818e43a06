import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { loadConfig } from "../cli/load-config.ts";
import { textError } from "../cli/load-error.ts";

const ROOT = join(import.meta.dirname, "..");

/**
 * Returns why wrangler cannot build the Worker with the current `weir.config.ts`; undefined if it can. If the file only
 * has faults, the Worker runs, and answers with them itself.
 *
 * @param folder the folder with the file @default this repository
 */
export async function configProblem(folder: string = ROOT): Promise<string | undefined> {
  const path = join(folder, "weir.config.ts");
  if (!existsSync(path)) {
    return "weir.config.ts is missing. Requests are answered again when it is back.";
  }
  const loaded = await loadConfig(relative(process.cwd(), path));
  if (loaded.kind !== "unreadable") return undefined;
  return `${textError("weir.config.ts", loaded.error)}\nRequests are answered again when the file is correct.`;
}

import type { LoadedConfig } from "./load-config.ts";

/** The result of a check that failed in `wrangler dev`. */
export interface DevOutcome {
  /** A sentence about requests that arrive before the author corrects the problem. */
  readonly notice: string;
  readonly exitCode: 0 | 1;
}

/**
 * Decides how `check` ends if it fails while `wrangler dev` runs it as the command of `[build]`.
 *
 * If the command exits with 1, wrangler prints more than 120 lines about the process, and delays all
 * requests. So the command exits with 0 if the rest of the build deals with the problem: if the
 * configuration has faults, the Worker answers with 503 and the faults; if it has a wrong syntax or a
 * wrong import, esbuild reports this in a few lines. But if the file itself throws an error, the Worker
 * could not start, and `wrangler dev` would end. Then the command must exit with 1.
 *
 * @param variables the environment variables, with which wrangler names its command
 * @returns undefined if `wrangler dev` does not run the command
 */
export function devOutcome(
  loaded: LoadedConfig,
  { WRANGLER_COMMAND, NODE_ENV = "" }: NodeJS.ProcessEnv,
): DevOutcome | undefined {
  if (WRANGLER_COMMAND !== "dev") return undefined;
  if (loaded.kind === "valid") {
    return { notice: "These findings stop a deploy, but not wrangler dev.", exitCode: 0 };
  }
  // With another NODE_ENV, wrangler's bundle is not for development, and defineConfig throws in it.
  const isDevelopment = NODE_ENV === "" || NODE_ENV === "development";
  if (loaded.kind === "faulty" && isDevelopment) {
    return {
      notice: "Until the file is correct, the Worker answers requests with 503 and these faults.",
      exitCode: 0,
    };
  }
  const isReportedByBundler = loaded.kind === "unreadable" && !loaded.throws;
  return {
    notice: "Until the file is correct, wrangler delays all requests.",
    exitCode: isReportedByBundler ? 0 : 1,
  };
}

import type { Fault } from "../config/faults.ts";
import { problemResponse } from "./problem.ts";

/**
 * Returns the response to every request under `wrangler dev` if the configuration has faults. Its
 * status is 503. Its body lists the faults, so that a developer need not look at the terminal.
 * `faultsOf` removes secrets from the values in faults.
 */
export function faultyConfigResponse(faults: readonly Fault[]): Response {
  const problem = {
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail:
      "Weir's configuration has faults. Correct the file; wrangler dev then loads it, without a restart.",
    faults: faults.map(({ path, message }) => ({ path, message })),
  };
  // The response has no CORS fields, so pages of other origins cannot read the faults.
  return problemResponse(problem);
}

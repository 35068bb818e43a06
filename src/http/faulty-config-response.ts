import type { Fault } from "../config/faults.ts";
import { allowOrigin } from "./cors.ts";
import { problemResponse } from "./problem.ts";

/**
 * 503: the configuration has faults, and `wrangler dev` runs. The body lists the faults, so that a
 * developer finds them without a look at the terminal. The values in faults are safe to show, see
 * `faultsOf`.
 */
export function faultyConfigResponse(request: Request, faults: readonly Fault[]): Response {
  const problem = {
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail:
      "Weir's configuration has faults. Correct the file; wrangler dev then loads it, without a restart.",
    faults: faults.map(({ path, message }) => ({ path, message })),
  };
  const response = problemResponse(problem);
  allowOrigin(request, response.headers);
  return response;
}

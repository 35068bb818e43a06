import { AdminError, EXIT } from "./admin/admin-error.ts";
import { listOverrides, override } from "./admin/override.ts";
import { peek, reset } from "./admin/peek.ts";
import type { Printed } from "./admin/printed.ts";
import { statistics, top } from "./admin/statistics.ts";

export const runPeek = printing(peek);
export const runReset = printing(reset);
export const runOverride = printing(override);
export const runOverrides = printing(listOverrides);
export const runStatistics = printing(statistics);
export const runTop = printing(top);

/**
 * Turns a command into a function that prints its result. With `--json` it prints one JSON document,
 * also for an error.
 *
 * @returns a function that returns the exit code
 */
function printing<Options>(command: (options: Options) => Promise<Printed>) {
  return async (options: Options & { readonly json?: true }): Promise<number> => {
    try {
      const { json, text } = await command(options);
      console.log(options.json ? JSON.stringify(json, null, 2) : text);
      return EXIT.done;
    } catch (error) {
      // A field that is missing in an answer appears as this error when the answer is printed.
      const known = error instanceof TypeError ? otherForm() : error;
      if (!(known instanceof AdminError)) throw error;
      if (options.json) {
        console.log(JSON.stringify({ ok: false, error: known.message }, null, 2));
      } else {
        console.error(known.message);
      }
      return known.exitCode;
    }
  };
}

function otherForm(): AdminError {
  return new AdminError(
    EXIT.unavailable,
    "The answer has another form than expected. Compare the version of edge-weir in this project with that of the deployed Worker.",
  );
}

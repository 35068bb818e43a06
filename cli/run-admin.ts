import { EXIT, MAYBE_MADE, type Printed } from "./admin/connection.ts";
import { listOverrides, override } from "./admin/override.ts";
import { peek, reset } from "./admin/selector.ts";
import { statistics, top } from "./admin/statistics.ts";
import { CommandFailure } from "./command-failure.ts";

export const runPeek = printing(peek);
export const runReset = printing(reset, "change");
export const runOverride = printing(override, "change");
export const runOverrides = printing(listOverrides);
export const runStatistics = printing(statistics);
export const runTop = printing(top);

/**
 * Turns a command into a function that prints its result. With `--json` it prints one JSON document,
 * also for an error.
 *
 * @param kind `change` if the command changes something before it prints
 * @returns a function that returns the exit code
 */
function printing<Options>(
  command: (options: Options) => Promise<Printed>,
  kind: "read" | "change" = "read",
) {
  return async (options: Options & { readonly json?: true }): Promise<number> => {
    try {
      const { json, text } = await command(options);
      console.log(options.json ? JSON.stringify(json, null, 2) : text);
      return EXIT.done;
    } catch (error) {
      // A field that is missing in an answer appears as this error when the answer is printed.
      throw error instanceof TypeError ? otherForm(kind) : error;
    }
  };
}

function otherForm(kind: "read" | "change"): CommandFailure {
  const message =
    "The answer has another form than expected. Compare the version of edge-weir in this project with that of the deployed Worker.";
  return kind === "change"
    ? new CommandFailure(EXIT.uncertain, `${message} ${MAYBE_MADE}`)
    : new CommandFailure(EXIT.unavailable, message);
}

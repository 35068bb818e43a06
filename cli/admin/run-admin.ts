import { jsonText } from "../print/text.ts";
import { otherForm, type Printed } from "./connection.ts";
import { denials } from "./denials.ts";
import { listOverrides, override } from "./override.ts";
import { peek, reset } from "./selector.ts";
import { statistics, top } from "./statistics.ts";

export const runPeek = printing(peek);
export const runReset = printing(reset, "change");
export const runOverride = printing(override, "change");
export const runOverrides = printing(listOverrides);
export const runStatistics = printing(statistics);
export const runTop = printing(top);
export const runDenials = printing(denials);

/**
 * Turns a command into a function that prints its result. With `--json` it prints one JSON document.
 *
 * @param kind `change` if the command changes something before it prints
 */
function printing<Options>(
  command: (options: Options) => Promise<Printed>,
  kind: "read" | "change" = "read",
) {
  return async (options: Options & { readonly json?: true }): Promise<void> => {
    try {
      const { json, text } = await command(options);
      console.log(options.json ? jsonText(json) : text);
    } catch (error) {
      // If an answer lacks a field, formatting the answer throws a TypeError.
      throw error instanceof TypeError ? otherForm(kind === "change") : error;
    }
  };
}

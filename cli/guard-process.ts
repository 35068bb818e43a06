import { writeSync } from "node:fs";
import { explainLoadError } from "./load-error.ts";
import { jsonText } from "./print/json-text.ts";

/** The exit code of a command that could not be carried out. */
const EXIT_CODE = 2;

/**
 * The last resort against code of a configuration that runs after its file is loaded, such as a timer. If it throws
 * an error or calls `process.exit`, the command ends with the exit code 2 and a message, and with `--json` with one
 * JSON document.
 *
 * @returns a function to call when the command has ended. Errors after that change nothing
 */
export function guardProcess(isJson: boolean): () => void {
  let hasEnded = false;
  const { exit } = process;
  const report = (error: string) => {
    hasEnded = true;
    if (isJson) writeSync(1, `${jsonText({ ok: false, error })}\n`);
    else writeSync(2, `${error}\n`);
    process.exitCode = EXIT_CODE;
  };
  process.on("uncaughtException", (error) => {
    if (hasEnded) return;
    report(`The command failed. ${explainLoadError(error)}`);
    exit();
  });
  process.on("exit", (code) => {
    if (!hasEnded && code === 0) {
      report("The command ended early, because code of the configuration calls process.exit.");
    }
  });
  return () => {
    hasEnded = true;
  };
}

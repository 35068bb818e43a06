/** Runs the starter with the arguments of the command line, and sets the exit code. */
import { CommanderError } from "commander";
import { Failure, fileFailure } from "./failure.ts";
import { run } from "./run.ts";

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (thrown) {
  const error = fileFailure(thrown, "Nothing was written.");
  if (error instanceof CommanderError) {
    // The parser has already printed its error, or the help.
    process.exitCode = error.exitCode;
  } else if (error instanceof Failure) {
    console.error(error.message);
    process.exitCode = 1;
  } else {
    throw error;
  }
}

/** `npm run weir -- <command>`: Weir's tools for the command line, one file for each command. */
import { Command, CommanderError } from "commander";
import { addCheckCommand } from "./check.ts";

const program = new Command("npm run weir --")
  .description("Tools for Weir's configuration. They need no account and no network.")
  .showHelpAfterError("(--help shows what is allowed)")
  // Ending through process.exit could cut off what is still to be written.
  .exitOverride();

addCheckCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  // The parser has printed its own error, or the help that was asked for.
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode;
}

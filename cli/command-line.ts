import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { addAdminCommands } from "./admin.ts";
import { addCheckCommand } from "./check.ts";
import { CommandFailure } from "./command-failure.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addExplainCommand } from "./explain.ts";
import { jsonText, printableLines } from "./print/text.ts";
import { addReplayCommand } from "./replay.ts";
import { addSuggestCommand } from "./suggest.ts";

/** In the package, this file is JavaScript, so its ending tells where it runs. */
const name = import.meta.url.endsWith(".ts") ? "npm run weir --" : "npx weir";

/**
 * Runs the command that the arguments name, and sets `process.exitCode`. Each command has a file of its
 * own.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  const manifest = readFileSync(join(import.meta.dirname, "../package.json"), "utf8");
  const program = new Command(name)
    .description(
      "Tools for Weir. check, explain, replay and suggest need no account; doctor calls the database; the others call a Worker.",
    )
    .version(JSON.parse(manifest).version)
    .showHelpAfterError("(--help shows what is allowed)")
    // The default, process.exit, can cut off output that has not been written yet.
    .exitOverride();
  addCheckCommand(program);
  addDoctorCommand(program);
  addExplainCommand(program);
  addReplayCommand(program);
  addSuggestCommand(program);
  addAdminCommands(program);
  try {
    // Commander prints the help as an error if there is no command.
    if (args.length === 0) return program.outputHelp();
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    const isFailure = error instanceof CommandFailure;
    if (!isFailure && !(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode;
    if (error.exitCode !== 0 && args.includes("--json")) {
      console.log(jsonText({ ok: false, error: error.message.replace(/^error: /, "") }));
    } else if (isFailure) {
      console.error(printableLines(error.message));
    }
    // The parser has already printed its error or the help.
  }
}

/**
 * The entry point of the command line: `npm run weir --` in this repository, `npx weir` in the
 * package. Each command has a file of its own.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { withoutNodeEnv } from "./node-env.ts";

/** In the package, this file is JavaScript. */
const name = import.meta.url.endsWith(".ts") ? "npm run weir --" : "npx weir";

const manifest = readFileSync(join(import.meta.dirname, "../package.json"), "utf8");

const program = new Command(name)
  .description("Tools for Weir. check needs no account and no network; doctor calls the database.")
  .version(JSON.parse(manifest).version)
  .showHelpAfterError("(--help shows what is allowed)")
  // The default, process.exit, can cut off output that has not been written yet.
  .exitOverride();

const [{ addCheckCommand }, { addDoctorCommand }] = await withoutNodeEnv(() =>
  Promise.all([import("./check.ts"), import("./doctor.ts")]),
);
addCheckCommand(program);
addDoctorCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  // The parser has already printed its error, or the help.
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode;
}

// A configuration may leave timers or connections open, which would keep this process running.
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((resolve) => stream.write("", resolve));
}
process.exit();

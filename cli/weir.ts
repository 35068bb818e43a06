/**
 * The entry point of the command line: `npm run weir --` in this repository, `npx weir` in the
 * package.
 */
import { runCommandLine } from "./command-line.ts";

await runCommandLine(process.argv.slice(2));

// A configuration may leave timers or connections open, which would keep this process running.
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((resolve) => stream.write("", resolve));
}
process.exit();

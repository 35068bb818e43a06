/**
 * The entry point of the command line: `npm run weir --` in this repository, `npx weir` in the
 * package.
 */
import { runCommandLine } from "./command-line.ts";
import { guardProcess } from "./guard-process.ts";

const args = process.argv.slice(2);
const endGuard = guardProcess(args.includes("--json"));
await runCommandLine(args);
endGuard();

// A configuration may leave timers or connections open, which would keep this process running.
for (const stream of [process.stdout, process.stderr]) {
  await new Promise((resolve) => stream.write("", resolve));
}
process.exit();

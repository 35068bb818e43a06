/**
 * The entry point of the command line: `npm run weir --` in this repository, `npx weir` in the
 * package.
 */
import { guardProcess, watchOutput, withoutNodeEnv } from "./process.ts";

const args = process.argv.slice(2);
const outputErrors = watchOutput();
const endGuard = guardProcess(args.includes("--json"));
// The texts of faults are created when src/config is imported.
const { runCommandLine } = await withoutNodeEnv(() => import("./command-line.ts"));
await runCommandLine(args);
endGuard();

// A configuration may leave timers or connections open, which would keep this process running.
await written(process.stdout);
outputErrors.report();
await written(process.stderr);
process.exit();

function written(stream: NodeJS.WriteStream): Promise<unknown> {
  return new Promise((resolve) => stream.write("", resolve));
}

/**
 * Makes `node_modules/.bin/node`, which npm scripts and npx find first, the Node of the optional
 * dependency for this platform. npm does that itself from 11.6 on. Earlier ones remove the link together
 * with the packages for other platforms, which name the same command.
 *
 * JavaScript, for it runs by whatever Node the machine has.
 */
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const { optionalDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const isWindows = process.platform === "win32";
const program = isWindows ? "node.exe" : "node";
const commands = join("node_modules", ".bin");
const link = join(commands, isWindows ? "node.cmd" : "node");

const installed = Object.keys(optionalDependencies ?? {}).find((name) =>
  existsSync(join("node_modules", name, "bin", program)),
);
// Without one the machine's own Node runs the scripts, if it is new enough.
if (installed && existsSync(commands) && !existsSync(link)) {
  if (isWindows) writeFileSync(link, `@"%~dp0\\..\\${installed}\\bin\\${program}" %*\r\n`);
  else symlinkSync(join("..", installed, "bin", program), link);
}

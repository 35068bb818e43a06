/**
 * Links `node_modules/.bin/node`, which npm scripts and npx find first, to the Node of the optional dependency for this
 * platform. npm 11.6 and later create this link themselves. Earlier versions remove it together with the packages for
 * other platforms, which also have a command `node`.
 *
 * This file is JavaScript, because any version of Node on the machine may run it.
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
// Without the optional dependency, the machine's own Node runs the scripts.
if (installed && existsSync(commands) && !existsSync(link)) {
  if (isWindows) writeFileSync(link, `@"%~dp0\\..\\${installed}\\bin\\${program}" %*\r\n`);
  else symlinkSync(join("..", installed, "bin", program), link);
}

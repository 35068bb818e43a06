/**
 * Turns this folder into the npm package, if it is the temporary clone that npm makes for `npm install git+https://…`.
 * The clone's package.json points at TypeScript, which Node does not load from node_modules.
 *
 * npm installs the clone's dependencies with the environment variable _PACOTE_NO_PREPARE_, and then reads package.json
 * again. In a clone of your own, the variable is not set, and this script does nothing.
 *
 * This file is JavaScript, because any version of Node on the machine may run it.
 */
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const built = join("dist", "package");

if (process.env._PACOTE_NO_PREPARE_) {
  // npm scripts find the project's own Node first, which scripts/link-node.mjs has linked.
  execFileSync("node", ["scripts/build-package.ts"], { stdio: "inherit" });
  for (const name of readdirSync(built)) {
    rmSync(name, { recursive: true, force: true });
    cpSync(join(built, name), name, { recursive: true });
  }
}

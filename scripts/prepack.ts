/** Before `npm pack` and `npm publish`: builds what the package holds, and points its manifest there. */
import { execFileSync } from "node:child_process";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BUILD, restoreManifest, swapManifest } from "./package-manifest.ts";

const root = join(import.meta.dirname, "..");

// In case that the last time was broken off.
await restoreManifest(root);

await rm(join(root, BUILD), { recursive: true, force: true });
const project = join(import.meta.dirname, "tsconfig.package.json");
execFileSync("tsc", ["-p", project], { cwd: root, stdio: "inherit" });

const command = join(root, BUILD, "cli/weir.js");
await writeFile(command, `#!/usr/bin/env node\n${await readFile(command, "utf8")}`);
await chmod(command, 0o755);

await swapManifest(root);

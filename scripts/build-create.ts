/**
 * Builds the folder dist/create, which is the whole npm package `create-edge-weir`.
 * .github/workflows/publish.yml publishes it.
 */
import { execFileSync } from "node:child_process";
import { chmod, cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const target = join(root, "dist/create");

await rm(target, { recursive: true, force: true });

const project = join(import.meta.dirname, "tsconfig.create.json");
execFileSync("tsc", ["-p", project], { cwd: root, stdio: "inherit" });

for (const name of ["templates", "README.md"]) {
  await cp(join(root, "create", name), join(target, name), { recursive: true });
}
await cp(join(root, "LICENSE"), join(target, "LICENSE"));

// The starter's version is also the version of edge-weir that it installs.
const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const manifest = JSON.parse(await readFile(join(root, "create/package.json"), "utf8"));
const command = "src/index.js";
const published = { ...manifest, version, bin: { [manifest.name]: command } };
await writeFile(join(target, "package.json"), `${JSON.stringify(published, null, 2)}\n`);

const program = join(target, command);
await writeFile(program, `#!/usr/bin/env node\n${await readFile(program, "utf8")}`);
await chmod(program, 0o755);

/**
 * The first half of `npm run pack`. It builds the folder dist/package, which is the whole npm
 * package and has its own package.json. `npm publish ./dist/package` publishes it.
 */
import { execFileSync } from "node:child_process";
import { cp, glob, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { packageManifest, type RepositoryManifest } from "./package-manifest.ts";

/**
 * The files of the package that the compiler does not write: the command's first file, the documentation, and the files
 * that its pages link to. The patterns match files only, because the folder of an example may also contain secrets
 * (.dev.vars) and files of wrangler.
 */
const COPIED = [
  "*.md",
  "LICENSE",
  "cli/*.cjs",
  "deploy/**/*.{json,yml}",
  "docs/**/*.{md,png,svg}",
  "examples/**/*.{ts,md}",
  "examples/**/wrangler.toml",
];

const root = join(import.meta.dirname, "..");
const target = join(root, "dist/package");

await rm(target, { recursive: true, force: true });

const project = join(import.meta.dirname, "tsconfig.package.json");
execFileSync("tsc", ["-p", project], { cwd: root, stdio: "inherit" });

const copied = glob(COPIED, {
  cwd: root,
  exclude: ["**/node_modules/**", "**/.*/**", "CONTRIBUTING.md"],
});
for await (const path of copied) await cp(join(root, path), join(target, path));

const repository: RepositoryManifest = JSON.parse(
  await readFile(join(root, "package.json"), "utf8"),
);
const manifest = `${JSON.stringify(packageManifest(repository), null, 2)}\n`;
await writeFile(join(target, "package.json"), manifest);

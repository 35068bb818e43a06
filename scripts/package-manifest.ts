import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

// In the repository, package.json points at the TypeScript itself, and nothing needs a build. Node
// takes no types off what is under node_modules, so a package has to point at JavaScript: while it is
// packed, package.json is another one.

/** Where the package's JavaScript and declarations are, from the repository's root. */
export const BUILD = "dist/package";

/** The repository's package.json, as long as another one is in its place. */
const KEPT = "dist/package.json.kept";

interface Manifest {
  readonly exports: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
  /** Node, for development: not for projects that install the package. */
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Puts the package's manifest in place of the repository's. */
export async function swapManifest(root: string): Promise<void> {
  const [path, kept] = [join(root, "package.json"), join(root, KEPT)];
  await mkdir(join(root, "dist"), { recursive: true });
  await copyFile(path, kept);
  const manifest: Manifest = JSON.parse(await readFile(path, "utf8"));
  await writeFile(path, `${JSON.stringify(packaged(manifest), null, 2)}\n`);
}

/** Puts the repository's manifest back, if it is not in its place. */
export async function restoreManifest(root: string): Promise<void> {
  if (existsSync(join(root, KEPT))) await rename(join(root, KEPT), join(root, "package.json"));
}

function packaged({ optionalDependencies: _, ...manifest }: Manifest): object {
  const exported = Object.entries(manifest.exports).map(([name, source]) => [
    name,
    { types: built(source, ".d.ts"), default: built(source, ".js") },
  ]);
  const commands = Object.entries(manifest.bin).map(([name, source]) => [
    name,
    built(source, ".js"),
  ]);
  return {
    ...manifest,
    exports: Object.fromEntries(exported),
    bin: Object.fromEntries(commands),
  };
}

/** @param source such as `./src/index.ts` */
function built(source: string, extension: string): string {
  return source.replace("./", `./${BUILD}/`).replace(/\.ts$/, extension);
}

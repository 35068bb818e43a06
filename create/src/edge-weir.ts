import { readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { Failure } from "./failure.ts";

/** Where a project gets the package edge-weir. */
export interface EdgeWeir {
  /** The text by which package.json names the package. */
  readonly spec: string;
  /** The package itself, which the project keeps; undefined if it comes from elsewhere. */
  readonly tarball?: Tarball;
}

interface Tarball {
  /** Relative to the project, with `/`. */
  readonly path: string;
  readonly content: Buffer;
}

/**
 * Reads the package if the flag `--edge-weir` names a .tgz file. The project gets a copy of the file, so that it can be
 * installed on every machine.
 *
 * @param flag a version, a tag, a git URL, or the path of a file, relative to the current folder
 * @param version the version of this starter, which is also the version of edge-weir
 * @throws {Failure} if the file does not exist
 */
export async function readEdgeWeir(flag: string | undefined, version: string): Promise<EdgeWeir> {
  if (flag === undefined) return { spec: `^${version}` };
  if (!/\.(tgz|tar\.gz)$/.test(flag) || /^(https?|git)\b/.test(flag)) return { spec: flag };
  const file = resolve(flag.replace(/^file:/, ""));
  const content = await readFile(file).catch(() => {
    throw new Failure(`--edge-weir: there is no file ${file}.`);
  });
  const path = `vendor/${basename(file)}`;
  return { spec: `file:${path}`, tarball: { path, content } };
}

/** Returns the path and the content of the package, if the project keeps it. */
export function tarballFiles({ tarball }: EdgeWeir): [string, Buffer][] {
  return tarball ? [[tarball.path, tarball.content]] : [];
}

/** Returns a part for the project's README: how the project gets the package from npm's registry. */
export function toRegistry({ path }: Tarball): string {
  return `## The package edge-weir

\`${path}\` is the package itself, because it comes from no registry. Commit this file: \`npm ci\` needs
it on every machine. When npm's registry has the package, \`npm install edge-weir@latest\` takes it from there. Then
delete the folder \`vendor\`.
`;
}

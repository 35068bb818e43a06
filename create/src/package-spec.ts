import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "./failure.ts";

/**
 * Returns the text by which a project's package.json names the package edge-weir.
 *
 * @param spec the flag `--edge-weir`. The path of a file is relative to the current folder
 * @param version the version of this starter, which is also the version of edge-weir
 * @throws {Failure} if the file does not exist
 */
export function packageSpec(spec: string | undefined, version: string): string {
  if (spec === undefined) return `^${version}`;
  if (!spec.startsWith("file:") && !/\.(tgz|tar\.gz)$/.test(spec)) return spec;
  if (/^(https?|git)\b/.test(spec)) return spec;
  const path = resolve(spec.replace(/^file:/, ""));
  if (!existsSync(path)) throw new Failure(`--edge-weir: there is no file ${path}.`);
  return `file:${path}`;
}

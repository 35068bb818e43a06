import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Metafile } from "esbuild";

/** A part of the bundle: a package, a folder of src/, or a file in the root. */
export interface Part {
  readonly name: string;
  /** The minified size before gzip: after gzip, the size of a part depends on all other parts. */
  readonly bytes: number;
}

type Outputs = Pick<Metafile, "outputs">;

/** Returns the size of the uploaded files after gzip, in bytes, as wrangler calculates it. */
export async function gzipSize(root: string, meta: Outputs): Promise<number> {
  const uploaded = Object.keys(meta.outputs).filter((path) => !path.endsWith(".map"));
  return gzipSync(
    Buffer.concat(await Promise.all(uploaded.map((path) => readFile(join(root, path))))),
  ).byteLength;
}

/** Returns the parts of the bundle, the biggest first. */
export function partsOf({ outputs }: Outputs): Part[] {
  const bytes = new Map<string, number>();
  for (const { inputs } of Object.values(outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      bytes.set(partOf(path), (bytes.get(partOf(path)) ?? 0) + bytesInOutput);
    }
  }
  return [...bytes]
    .map(([name, total]) => ({ name, bytes: total }))
    .sort((one, other) => other.bytes - one.bytes);
}

/** @param path such as `node_modules/@upstash/redis/cloudflare.mjs` or `src/http/forward.ts` */
function partOf(path: string): string {
  const [, inPackages] = path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)/) ?? [];
  if (inPackages) return inPackages;
  const folder = dirname(path);
  return folder === "." ? path : folder;
}

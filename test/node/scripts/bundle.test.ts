import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Metafile } from "esbuild";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gzipSize, partsOf } from "../../../scripts/bundle.ts";

/** Returns the metafile of a bundle in which each input has the given size. */
function metaOf(inputs: Record<string, number>): Pick<Metafile, "outputs"> {
  const sizes = Object.entries(inputs).map(([path, bytesInOutput]) => [path, { bytesInOutput }]);
  const output = { bytes: 0, imports: [], exports: [] };
  return {
    outputs: {
      "worker.js": { ...output, inputs: Object.fromEntries(sizes) },
      "worker.js.map": { ...output, inputs: {} },
    },
  };
}

describe("a bundle's parts", () => {
  it("are packages, scoped packages and folders, the biggest first", () => {
    const meta = metaOf({
      "src/worker.ts": 20,
      "src/http/forward.ts": 30,
      "src/http/responses.ts": 5,
      "weir.config.ts": 3,
      "node_modules/hono/dist/hono.js": 40,
      "node_modules/hono/dist/utils/url.js": 2,
      "node_modules/@upstash/redis/cloudflare.mjs": 50,
    });
    expect(partsOf(meta)).toEqual([
      { name: "@upstash/redis", bytes: 50 },
      { name: "hono", bytes: 42 },
      { name: "src/http", bytes: 35 },
      { name: "src", bytes: 20 },
      { name: "weir.config.ts", bytes: 3 },
    ]);
  });

  it("belong to the innermost package, wherever the packages are installed", () => {
    const meta = metaOf({ "../node_modules/one/node_modules/two/index.js": 1 });
    expect(partsOf(meta)).toEqual([{ name: "two", bytes: 1 }]);
  });
});

describe("a bundle's size", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "weir-bundle-"));
  });

  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  it("is the size of the code after gzip, without the source map", async () => {
    const code = "export default {};".repeat(100);
    await writeFile(join(folder, "worker.js"), code);
    await writeFile(join(folder, "worker.js.map"), "{}");
    expect(await gzipSize(folder, metaOf({}))).toBe(gzipSync(code).byteLength);
  });
});

import { join } from "node:path";
import { build } from "esbuild";

const WORKERS = join(import.meta.dirname, "../workers");

const bundled = new Map<string, Promise<string>>();

/** One of the Workers in bench/workers/ as one module, minified as wrangler.toml has it for Weir. */
export function bundleWorker(file: string): Promise<string> {
  const known = bundled.get(file) ?? bundle(file);
  bundled.set(file, known);
  return known;
}

async function bundle(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(WORKERS, file)],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
  });
  return outputFiles.map(({ text }) => text).join("");
}

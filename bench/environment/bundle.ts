import { join } from "node:path";
import { bundleForWorkerd } from "../../dev/workerd.ts";

const WORKERS = join(import.meta.dirname, "../workers");

const bundles = new Map<string, Promise<string>>();

/** Bundles a Worker of bench/workers/ into one module, minified like Weir in a deployment. */
export function bundleWorker(file: string): Promise<string> {
  let bundle = bundles.get(file);
  if (!bundle) {
    bundle = bundleForWorkerd({ entryPoints: [join(WORKERS, file)], minify: true });
    bundles.set(file, bundle);
  }
  return bundle;
}

/** After `npm pack` and `npm publish`: puts the repository's package.json back. */
import { join } from "node:path";
import { restoreManifest } from "./package-manifest.ts";

await restoreManifest(join(import.meta.dirname, ".."));

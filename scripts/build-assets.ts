/**
 * `npm run assets`: bundles the script and the style sheet of the dashboard into the module
 * src/admin/dashboard/assets.generated.ts, because a Worker has no files. With `--check`, it writes nothing
 * and exits with 1 if the module is not fresh.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assetsModule } from "./dashboard-assets.ts";

const path = join(import.meta.dirname, "../src/admin/dashboard/assets.generated.ts");
const fresh = await assetsModule();

if (!process.argv.includes("--check")) {
  await writeFile(path, fresh);
} else if ((await readFile(path, "utf8").catch(() => "")) !== fresh) {
  console.error(
    "The assets of the dashboard are not fresh. Run npm run assets, and commit the result.",
  );
  process.exitCode = 1;
}

/**
 * `npm run assets`: writes the Lua script, and the scripts and style sheets of the dashboard and of the HTML reports,
 * into modules, because a Worker has no files, and a report is a single file. With `--check`, it writes nothing and
 * exits with 1 if a module is not fresh.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ASSET_MODULES } from "./assets.ts";

const root = join(import.meta.dirname, "..");

for (const [name, source] of Object.entries(ASSET_MODULES)) {
  const path = join(root, name);
  const fresh = await source();
  if (!process.argv.includes("--check")) {
    await writeFile(path, fresh);
  } else if ((await readFile(path, "utf8").catch(() => "")) !== fresh) {
    console.error(`${name} is not fresh. Run npm run assets, and commit the result.`);
    process.exitCode = 1;
  }
}

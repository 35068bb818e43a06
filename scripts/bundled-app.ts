import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const root = join(import.meta.dirname, "..");
/** In this folder, the name `edge-weir` is the package in the repository's root. */
const folder = join(root, "dist/app");

/** A Hono app, and the same app with Weir. */
const FILES = {
  "without-weir.ts": `
import { Hono } from "hono";
const app = new Hono();
app.post("/login", (c) => c.text("Welcome"));
export default app;
`,
  "with-weir.ts": `
import { rateLimit } from "edge-weir";
import { defineConfig } from "edge-weir/config";
import { Hono } from "hono";
const config = defineConfig({
  rules: [{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }],
});
export { ControlObject, CounterObject } from "edge-weir";
const app = new Hono();
app.use(rateLimit(config));
app.post("/login", (c) => c.text("Welcome"));
export default app;
`,
};

/** Minified as in the repository's wrangler.toml. */
const WRANGLER = `
name = "app"
compatibility_date = "2026-11-01"
compatibility_flags = ["no_nodejs_compat"]
minify = true
keep_names = false
`;

/** Bundles an app as `wrangler deploy` does, and returns the size of the bundle after gzip, in bytes. */
export function bundledAppSize(file: keyof typeof FILES): number {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, file), FILES[file]);
  writeFileSync(join(folder, "wrangler.toml"), WRANGLER);
  const built = join(folder, "built");
  execFileSync("wrangler", ["deploy", "--dry-run", file, "--outdir", built], {
    cwd: folder,
    env: { ...process.env, WRANGLER_SEND_METRICS: "false" },
    timeout: 120_000,
    stdio: "pipe",
  });
  return gzipSync(readFileSync(join(built, file.replace(/\.ts$/, ".js")))).byteLength;
}

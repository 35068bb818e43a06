/**
 * Measures what `npm run bundle` has made against what a Worker may take here, shows what the bundle
 * is made of, and fails when that is too much.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSize, partsOf } from "./bundle.ts";
import { activeMs, leastOf } from "./startup.ts";

/**
 * The budget. Cloudflare allows 3 MiB (free) or 10 MiB of gzip, and a second of start-up: these are
 * what Weir needs with a little room, so that what makes it bigger is noticed.
 */
const BUDGET = {
  /** Of the bundle after gzip, in KiB. */
  gzipKiB: 72,
  /**
   * Of the Worker's start, in milliseconds, on the machine that measures. Most of it is workerd's
   * own: an empty Worker takes about 15 ms on two busy cores.
   */
  startupMs: 30,
};

/** Start-up is measured again, up to so many times, while it seems to take too long. */
const ATTEMPTS = 5;

/** How many parts of the bundle are shown. */
const SHOWN = 10;

const root = join(import.meta.dirname, "..");
const inDist = (name: string) => join(root, "dist", name);
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));

/** Bundles the Worker, starts it in workerd, and gives the time that its profile shows. */
function startupMs(): number {
  const profile = inDist("worker-startup.cpuprofile");
  execFileSync("wrangler", ["check", "startup", "--outfile", profile], {
    cwd: root,
    env: { ...process.env, WRANGLER_SEND_METRICS: "false" },
    timeout: 120_000,
  });
  return activeMs(readJson(profile));
}

const meta = readJson(inDist("bundle-meta.json"));
const kib = (bytes: number) => (bytes / 1024).toFixed(1);

console.log("Biggest parts of the bundle, before gzip:");
for (const { name, bytes } of partsOf(meta).slice(0, SHOWN)) {
  console.log(`  ${kib(bytes).padStart(6)} KiB  ${name}`);
}

const figures = [
  {
    what: "The bundle after gzip",
    is: (await gzipSize(root, meta)) / 1024,
    most: BUDGET.gzipKiB,
    unit: "KiB",
  },
  {
    what: "The Worker's start",
    is: leastOf(ATTEMPTS, BUDGET.startupMs, startupMs),
    most: BUDGET.startupMs,
    unit: "ms",
  },
];
for (const { what, is, most, unit } of figures) {
  console.log(`${what}: ${is.toFixed(1)} ${unit} of at most ${most}`);
}
for (const { what, is, most, unit } of figures.filter((each) => each.is > each.most)) {
  const over = `${(is - most).toFixed(1)} ${unit} over`;
  console.error(
    `${what} is ${over} its budget. Bring it down, or raise the budget in scripts/budget.ts.`,
  );
  process.exitCode = 1;
}

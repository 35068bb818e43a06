/**
 * The second half of `npm run budget`. Prints the biggest parts, the size and the start-up time of the bundle that `npm
 * run bundle` has built, and the size of Weir in the bundle of a Hono app. Exits with 1 if a figure exceeds the budget.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSize, partsOf } from "./bundle.ts";
import { bundledAppSize } from "./bundled-app.ts";
import { activeMs, leastOf } from "./startup.ts";

/**
 * The budget is a little more than Weir needs, so that a growing bundle is noticed. Cloudflare
 * itself allows 3 MiB (free plan) or 10 MiB after gzip, and one second of start-up.
 */
const BUDGET = {
  /** The size of the bundle after gzip, in KiB. */
  gzipKiB: 180,
  /** The part that Weir adds to the bundle of a small Hono app, after gzip, in KiB. */
  appGzipKiB: 113,
  /**
   * The start-up time of the Worker on the measuring machine, in milliseconds. Even an empty Worker takes approximately
   * 15 ms on two busy cores. Weir took 33 to 48 ms on one machine at different hours.
   */
  startupMs: 60,
};

/** The maximum number of start-up measurements. They end with the first result within the budget. */
const ATTEMPTS = 15;

/** The number of parts of the bundle that are printed. */
const PRINTED_PARTS = 10;

const root = join(import.meta.dirname, "..");
const inDist = (name: string) => join(root, "dist", name);
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));

/** Bundles the Worker, starts it in workerd, and returns the active time of its profile. */
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
for (const { name, bytes } of partsOf(meta).slice(0, PRINTED_PARTS)) {
  console.log(`  ${kib(bytes).padStart(6)} KiB  ${name}`);
}

const measurements = [
  {
    name: "The bundle after gzip",
    value: (await gzipSize(root, meta)) / 1024,
    max: BUDGET.gzipKiB,
    unit: "KiB",
  },
  {
    name: "Weir's part of a Hono app's bundle after gzip",
    value: (bundledAppSize("with-weir.ts") - bundledAppSize("without-weir.ts")) / 1024,
    max: BUDGET.appGzipKiB,
    unit: "KiB",
  },
  {
    name: "The Worker's start",
    value: leastOf(ATTEMPTS, BUDGET.startupMs, startupMs),
    max: BUDGET.startupMs,
    unit: "ms",
  },
];
for (const { name, value, max, unit } of measurements) {
  console.log(`${name}: ${value.toFixed(1)} ${unit} of at most ${max}`);
}
for (const { name, value, max, unit } of measurements.filter((each) => each.value > each.max)) {
  const excess = `${(value - max).toFixed(1)} ${unit}`;
  console.error(
    `${name} is ${excess} over its budget. Reduce it, or raise the budget in scripts/budget.ts.`,
  );
  process.exitCode = 1;
}

/**
 * `npm run bench:dashboard`: the time and the transferred bytes of the dashboard's pages, with 200 rules and a year of
 * statistics. The requests are sent one by one, and the first ones are not counted.
 */
import { startDashboard } from "./dashboard-worker.ts";
import { assetsOf, transfer } from "./transfer.ts";

const WARM_UP = 10;
const REQUESTS = 50;
const PAGES = [
  "/_weir/",
  "/_weir/?range=6h",
  "/_weir/?range=1y",
  "/_weir/rules?range=1y",
  "/_weir/rules/search?range=1y",
  "/_weir/clients?range=1y",
];

const { origin, stop } = await startDashboard();
try {
  console.log("page".padEnd(32), "median ms", "  max ms", "  page KiB", "  with assets KiB");
  for (const page of PAGES) {
    for (let index = 0; index < WARM_UP; index += 1) await transfer(origin + page);
    const durations: number[] = [];
    for (let index = 0; index < REQUESTS; index += 1) {
      durations.push((await transfer(origin + page)).durationMs);
    }
    durations.sort((one, other) => one - other);
    const { bytes, text } = await transfer(origin + page);
    const assets = await Promise.all(assetsOf(text).map((path) => transfer(origin + path)));
    const total = assets.reduce((sum, asset) => sum + asset.bytes, bytes);
    console.log(
      page.padEnd(32),
      (durations[REQUESTS / 2] ?? 0).toFixed(1).padStart(9),
      (durations.at(-1) ?? 0).toFixed(1).padStart(8),
      (bytes / 1024).toFixed(1).padStart(10),
      (total / 1024).toFixed(1).padStart(17),
    );
  }
} finally {
  await stop();
}

/**
 * Causes every fault and prints the results as a table. `node test/chaos/table.ts --write` also
 * writes the table into docs/failure.md. It takes about two minutes.
 */
import { readFile, writeFile } from "node:fs/promises";
import { startRedis } from "../../dev/redis.ts";
import { type Chaos, objectChaos, redisChaos, restChaos } from "./environments.ts";
import { chartOf, DOCUMENT, withChart } from "./support/chart.ts";
import { type Row, rowOf } from "./support/verdict.ts";

async function rowsOf(chaos: Chaos): Promise<Row[]> {
  const rows: Row[] = [];
  try {
    for (const [index, fault] of chaos.faults.entries()) {
      const row = rowOf(fault, await chaos.watch(index));
      console.error(row);
      rows.push(row);
    }
  } finally {
    await chaos.stop();
  }
  return rows;
}

const redis = await startRedis({ requireServer: true });
try {
  const own = await redisChaos();
  const charts = [
    chartOf("Upstash's REST API", await rowsOf(await restChaos(redis))),
    chartOf("Redis itself", own ? await rowsOf(own) : []),
    chartOf("Durable Objects", await rowsOf(await objectChaos())),
  ];
  const chart = charts.join("\n\n");
  console.log(chart);
  if (process.argv.includes("--write")) {
    await writeFile(DOCUMENT, withChart(await readFile(DOCUMENT, "utf8"), chart));
  }
} finally {
  await redis.stop();
}

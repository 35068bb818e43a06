// Measures in workerd how long a Worker takes to read lists of networks, and how long a lookup in
// them takes. Usage: node scripts/measure-networks.ts [number of networks]

import { join } from "node:path";
import { bundleForWorkerd, startWorkerd, workerConfig } from "../dev/workerd.ts";

const ROOT = join(import.meta.dirname, "..");
const count = Number(process.argv[2] ?? 10_000);

/**
 * A Worker that reads the lists, looks addresses up, and returns the shortest times of several
 * runs.
 */
const WORKER = `
import { networks } from "./src/config/address.ts";
import { readClient } from "./src/request/headers.ts";
import * as v from "valibot";

const COUNT = ${count};
const ROUNDS = 15;
const LOOKUPS = 20_000;
const random = (limit) => Math.floor(Math.random() * limit);
const hex = (limit) => random(limit).toString(16);
const v4 = () => [1 + random(223), random(256), random(256), random(256)].join(".");
const v6 = () => ["2" + hex(4096), hex(65536), hex(65536), hex(65536), "", hex(65536)].join(":");
const schema = networks();

function best(run) {
  let least = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now();
    run();
    least = Math.min(least, performance.now() - startedAt);
  }
  return least;
}

function measure(address, bits) {
  const texts = Array.from({ length: COUNT }, () => address() + "/" + bits());
  const startedAt = performance.now();
  const set = v.parse(schema, texts);
  const first = performance.now() - startedAt;
  const read = best(() => v.parse(schema, texts));
  const clients = Array.from({ length: LOOKUPS }, () => new Headers({ "cf-connecting-ip": address() }));
  const addresses = clients.map((headers) => readClient(headers).address);
  let found = 0;
  const lookup = best(() => { for (const each of addresses) if (set.contains(each)) found++; });
  const whole = best(() => {
    for (const headers of clients) if (set.contains(readClient(headers).address)) found++;
  });
  const perLookup = (ms) => Number(((ms * 1000) / LOOKUPS).toFixed(2));
  return {
    firstReadMs: Number(first.toFixed(1)),
    bestReadMs: Number(read.toFixed(1)),
    lookupUs: perLookup(lookup),
    lookupWithAddressUs: perLookup(whole),
    found: found > 0,
  };
}

export default {
  fetch() {
    return Response.json({
      ipv4: measure(v4, () => 20 + random(13)),
      ipv6: measure(v6, () => 32 + random(33)),
    });
  },
};
`;

const module = await bundleForWorkerd({ stdin: { contents: WORKER, resolveDir: ROOT } });
const workerd = await startWorkerd([{ config: workerConfig("networks", { "main.mjs": module }) }], {
  onLog: ({ message }) => console.error(message),
});
const response = await fetch(workerd.urls[0] as URL);
console.log(`${count} networks in workerd:`);
console.table(await response.json());
await workerd.stop();

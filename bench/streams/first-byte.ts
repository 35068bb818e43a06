/**
 * Measures the time that a settle function adds to the first byte of a streamed answer. One Worker has a rule that
 * reserves tokens and settles them by the body, the other has the same rule without the function. They get requests in
 * alternating order, so that changes of the machine's speed affect both. The requests are sent one by one, so that none
 * waits for the CPU. A second measurement shows the CPU time of an answer with many events.
 */

import { once } from "node:events";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { URL } from "node:url";
import { parseArgs } from "node:util";
import { startChild } from "../../dev/child.ts";
import { startRedis } from "../../dev/redis.ts";
import type { ConfigInput } from "../../src/config/index.ts";
import { type Runtime, startRuntime } from "../environment/runtime.ts";

const { values } = parseArgs({
  options: {
    pairs: { type: "string", default: "300" },
    "redis-latency": { type: "string", default: "5" },
    "first-token": { type: "string", default: "20" },
  },
});
const pairs = Number(values.pairs);
const redisLatencyMs = Number(values["redis-latency"]);
const firstTokenMs = Number(values["first-token"]);

/** The number of first pairs, which are not counted, because connections open and code is compiled. */
const WARM_UP_PAIRS = 20;
/** No pair begins after this time, in milliseconds, so that the bench also ends on a busy machine. */
const MAX_MS = 45_000;
/** The time for the settlement after each answer, so that it does not delay the next request. */
const REST_MS = redisLatencyMs + 10;
const SHARES = [0.1, 0.5, 0.9];
const BODY = JSON.stringify({
  model: "fake",
  max_tokens: 100,
  messages: [{ role: "user", content: "A question of usual length. ".repeat(20) }],
  stream: true,
  stream_options: { include_usage: true },
});

/** The number of events in an answer whose CPU time is measured. */
const EVENTS = 10_000;
const LONG_BODY = BODY.replace('"max_tokens":100,', `"max_tokens":${EVENTS},`);

const rule = {
  name: "tokens",
  key: "header:x-api-key",
  limit: 1_000_000_000,
  window: "1h",
  // Without leases, both Workers call the store for each request.
  lease: false,
} as const;
const CONFIGS: Record<string, ConfigInput> = {
  "without a settle function": { rules: [{ ...rule, cost: 1000 }] },
  "with a settle function": {
    rules: [{ ...rule, cost: { reserve: 1000, settle: "custom:usage" } }],
  },
};

/** A Worker, and the times to its first bytes. */
interface Subject {
  readonly name: string;
  readonly url: URL;
  readonly agent: Agent;
  readonly times: number[];
  readonly runtime: Runtime;
}

/** Sends a call, reads the whole answer, and returns the time to the first byte in milliseconds. */
async function timeToFirstByte({ url, agent }: Subject, body = BODY): Promise<number> {
  const headers = { "content-type": "application/json", "x-api-key": "bench" };
  const startedAt = performance.now();
  const sent = request(new URL("/v1/chat/completions", url), { method: "POST", headers, agent });
  sent.end(body);
  const [response] = await once(sent, "response");
  if (response.statusCode !== 200) throw new Error(`The status is ${response.statusCode}.`);
  // The first chunk and the end may arrive together, so waiting for both events begins now.
  const ended = once(response, "end");
  let firstByteMs = 0;
  response.on("data", () => {
    firstByteMs ||= performance.now() - startedAt;
  });
  await ended;
  return firstByteMs;
}

/** Returns the quantiles of SHARES. */
function quantiles(numbers: readonly number[]): number[] {
  const sorted = numbers.toSorted((one, other) => one - other);
  return SHARES.map((share) => sorted[Math.floor((sorted.length - 1) * share)] as number);
}

function print(title: string, figures: readonly number[], digits: number): void {
  const texts = figures.map((figure, index) => {
    return `p${(SHARES[index] as number) * 100} ${figure.toFixed(digits)}`;
  });
  console.log(`  ${title}: ${texts.join(", ")}`);
}

const stops: (() => Promise<void> | void)[] = [];
try {
  const redis = await startRedis({ requireServer: true });
  stops.push(redis.stop);
  const { host, port } = redis;
  const options = JSON.stringify({ redis: { host, port }, redisLatencyMs, firstTokenMs });
  const backend = await startChild(
    process.execPath,
    [join(import.meta.dirname, "backend.ts"), options],
    { stdio: ["ignore", "inherit", "inherit", "ipc"] },
  );
  stops.push(backend.stop);
  const [{ providerUrl, restUrl }] = (await once(backend.process, "message")) as [
    Record<"providerUrl" | "restUrl", string>,
  ];
  const subjects: Subject[] = [];
  for (const [name, config] of Object.entries(CONFIGS)) {
    const vars = {
      ORIGIN_URL: providerUrl,
      UPSTASH_REDIS_REST_URL: restUrl,
      UPSTASH_REDIS_REST_TOKEN: "bench",
      CONFIG: JSON.stringify({ ...config, prefix: `bench-${subjects.length}` }),
    };
    const runtime = await startRuntime({ worker: "weir-stream.ts", vars });
    stops.push(runtime.stop);
    const agent = new Agent({ keepAlive: true });
    stops.push(() => agent.destroy());
    subjects.push({ name, url: runtime.urls[0] as URL, agent, times: [], runtime });
  }
  const startedAt = performance.now();
  for (let pair = -WARM_UP_PAIRS; pair < pairs; pair++) {
    if (pair > 0 && performance.now() - startedAt > MAX_MS) break;
    for (const subject of pair % 2 === 0 ? subjects : subjects.toReversed()) {
      const firstByteMs = await timeToFirstByte(subject);
      if (pair >= 0) subject.times.push(firstByteMs);
      await delay(REST_MS);
    }
  }
  const [without, settled] = subjects.map(({ times }) => times) as [number[], number[]];
  const setup = `${without.length} pairs; the first token after ${firstTokenMs} ms, Redis after ${redisLatencyMs} ms`;
  console.log(`Time to the first byte (${setup}):`);
  for (const { name, times } of subjects) print(`${name}, in ms`, quantiles(times), 2);
  const base = quantiles(without);
  const ratios = quantiles(settled).map((ms, index) => ms / (base[index] as number));
  print("ratio", ratios, 3);
  // The difference within each pair shows small differences better than the quantiles do.
  const differences = settled.map((ms, index) => ms - (without[index] as number));
  print("difference within a pair, in ms", quantiles(differences), 2);
  console.log(`CPU time of the Worker for each event of an answer with ${EVENTS} events at once:`);
  for (const subject of subjects) {
    const before = subject.runtime.cpuMicroseconds();
    await timeToFirstByte(subject, LONG_BODY);
    const after = subject.runtime.cpuMicroseconds();
    if (before === undefined || after === undefined) continue;
    console.log(`  ${subject.name}, in ms: ${((after - before) / 1000 / EVENTS).toFixed(3)}`);
  }
} finally {
  for (const stop of stops.reverse()) await stop();
}

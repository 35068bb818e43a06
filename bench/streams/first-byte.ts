/**
 * Measures the time to the first byte of streamed answers of a language model: with a rule that
 * reserves and settles tokens, with a rule whose cost is a number, and without a rule. In each
 * round, every Worker in turn gets all streams. The streams of a Worker overlap, but they do not
 * begin at the same moment. Otherwise the bench would measure how the streams wait for the CPU.
 */
import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startChild } from "../../dev/child.ts";
import { startRedis } from "../../dev/redis.ts";
import type { ConfigInput } from "../../src/config/index.ts";
import { type Runtime, startRuntime } from "../environment/runtime.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "50" },
    rounds: { type: "string", default: "20" },
    "redis-latency": { type: "string", default: "5" },
    "first-token": { type: "string", default: "200" },
  },
});
const streams = Number(values.streams);
const rounds = Number(values.rounds);
const redisLatencyMs = Number(values["redis-latency"]);
const firstTokenMs = Number(values["first-token"]);

/** The time between the beginnings of two streams, in milliseconds. An answer takes more than a second. */
const STAGGER_MS = 1000 / streams;
/**
 * The goal: the median with a settlement divided by the median with a cost of 1 is at most this
 * number.
 */
const MAX_RATIO = 1.05;
const BODY = JSON.stringify({
  model: "fake",
  max_tokens: 100,
  messages: [{ role: "user", content: "A question of usual length. ".repeat(20) }],
  stream: true,
  stream_options: { include_usage: true },
});

const rule = {
  name: "tokens",
  key: "header:x-api-key",
  limit: 1_000_000_000,
  window: "1h",
  // Without leases, all Workers with a rule call the store for each request.
  lease: false,
} as const;
const CONFIGS: Record<string, ConfigInput> = {
  "no rule": { rules: [] },
  "a rule with a cost of 1": { rules: [rule] },
  "a rule with a reserve of 1000": {
    rules: [{ ...rule, cost: { reserve: 1000, settle: "custom:usage" } }],
  },
  "a rule with an estimate": {
    rules: [{ ...rule, cost: { reserve: "custom:estimate", settle: "custom:usage" } }],
  },
};

/** Sends a call on a new connection, reads the whole answer, and returns the time to the first byte in milliseconds. */
async function timeToFirstByte(url: URL): Promise<number> {
  const headers = { "content-type": "application/json", "x-api-key": "bench" };
  const startedAt = performance.now();
  const sent = request(new URL("/v1/chat/completions", url), {
    method: "POST",
    headers,
    agent: false,
  });
  sent.end(BODY);
  const [response] = await once(sent, "response");
  if (response.statusCode !== 200) throw new Error(`The status is ${response.statusCode}.`);
  await once(response, "data");
  const firstByteMs = performance.now() - startedAt;
  response.resume();
  await once(response, "end");
  return firstByteMs;
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] as number;
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
  const subjects: { name: string; runtime: Runtime; times: number[] }[] = [];
  for (const [name, config] of Object.entries(CONFIGS)) {
    const vars = {
      ORIGIN_URL: providerUrl,
      UPSTASH_REDIS_REST_URL: restUrl,
      UPSTASH_REDIS_REST_TOKEN: "bench",
      CONFIG: JSON.stringify({ ...config, prefix: `bench-${subjects.length}` }),
    };
    const runtime = await startRuntime({ worker: "weir-stream.ts", vars });
    stops.push(runtime.stop);
    subjects.push({ name, runtime, times: [] });
  }
  // The times of the first round are not used, because the Workers compile their code in this
  // round.
  for (let round = 0; round <= rounds; round++) {
    for (const { runtime, times } of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const url = runtime.urls[0] as URL;
      const all = Array.from({ length: streams }, async (_, index) => {
        await delay(index * STAGGER_MS);
        return timeToFirstByte(url);
      });
      const found = await Promise.all(all);
      if (round > 0) times.push(...found);
    }
  }
  const setup = `${streams} streams at once, ${rounds} rounds; the first token after ${firstTokenMs} ms, Redis after ${redisLatencyMs} ms`;
  console.log(`Time to the first byte (${setup}):`);
  for (const { name, times } of subjects) {
    console.log(`  ${name}: p50 ${median(times).toFixed(1)} ms`);
  }
  const [none, counted, ...settled] = subjects.map(({ times }) => median(times));
  for (const [index, p50] of settled.entries()) {
    const name = subjects[index + 2]?.name;
    const ofCounted = p50 / (counted as number);
    console.log(
      `${name}: ${ofCounted.toFixed(3)} times a cost of 1 (wanted: at most ${MAX_RATIO}), ${(p50 / (none as number)).toFixed(3)} times no rule`,
    );
  }
} finally {
  for (const stop of stops.reverse()) await stop();
}

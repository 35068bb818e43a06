/**
 * The child process with the servers that the Workers call: the language model and the REST server
 * of Redis. bench/environment/backend.ts explains why these servers have a process of their own.
 */
import { startLlmProvider } from "../../dev/llm-provider.ts";
import { startUpstashRest } from "../../dev/upstash-rest.ts";

// Normally, the parent ends this process. If the parent has crashed, this process ends itself.
process.on("disconnect", () => process.exit());

const { redis, redisLatencyMs, firstTokenMs } = JSON.parse(process.argv[2] ?? "{}") as {
  redis: { host: string; port: number };
  redisLatencyMs: number;
  firstTokenMs: number;
};

const provider = await startLlmProvider(({ body }) =>
  // A call for many tokens gets all of them without pauses.
  body.max_tokens === 100
    ? { prompt: 50, answer: 10, delayMs: firstTokenMs, pauseMs: 1 }
    : { prompt: 50, answer: Number(body.max_tokens) },
);
const rest = await startUpstashRest({ redis, token: "bench", delayMs: redisLatencyMs });
process.send?.({ providerUrl: provider.url, restUrl: rest.url });

/**
 * The child process with the servers that the Workers call: the origin, and one REST server for each Redis latency.
 * They have a process of their own, because the parent sends and measures the load. In one event loop, responses would
 * wait while requests are sent, and the bench would measure its own delays.
 */
import { startDemoOrigin } from "../../dev/demo-origin.ts";
import { startUpstashRest } from "../../dev/upstash-rest.ts";
import type { BackendMessage, BackendRequest } from "./start-backend.ts";

// Normally, the parent ends this process. If the parent has crashed, this process ends itself.
process.on("disconnect", () => process.exit());

const { redis, redisLatenciesMs, originLatencyMs } = JSON.parse(process.argv[2] ?? "{}") as {
  redis: { host: string; port: number };
  redisLatenciesMs: number[];
  originLatencyMs: number;
};

const origin = await startDemoOrigin({ delayMs: originLatencyMs });
const rests = await Promise.all(
  redisLatenciesMs.map((delayMs) => startUpstashRest({ redis, token: "bench", delayMs })),
);

process.on("message", (request: BackendRequest) => {
  if (request.type !== "calls") return;
  send({ calls: rests.reduce((sum, rest) => sum + rest.calls(), 0) });
});

send({ originUrl: origin.url, restUrls: rests.map(({ url }) => url) });

function send(message: BackendMessage): void {
  process.send?.(message);
}

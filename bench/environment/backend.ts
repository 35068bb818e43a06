/**
 * The child process with all that stands behind the Workers: the origin, and a REST server before
 * Redis for every distance.
 *
 * They have a process of their own because the load generator measures in the parent: on one event
 * loop, an answer would wait for requests that are being sent, and its latency would be the bench's.
 */
import { startDemoOrigin } from "../../dev/demo-origin.ts";
import { startUpstashRest } from "../../dev/upstash-rest.ts";
import type { FromBackend, ToBackend } from "./start-backend.ts";

// Without the parent there is nobody to end this process.
process.on("disconnect", () => process.exit());

const { redis, distances } = JSON.parse(process.argv[2] ?? "{}") as {
  redis: { host: string; port: number };
  distances: number[];
};

const origin = await startDemoOrigin();
const rests = await Promise.all(
  distances.map((delayMs) => startUpstashRest({ redis, token: "bench", delayMs })),
);

process.on("message", (message: ToBackend) => {
  if (message.ask !== "calls") return;
  tell({ calls: rests.reduce((sum, rest) => sum + rest.calls(), 0) });
});

tell({ originUrl: origin.url, restUrls: rests.map(({ url }) => url) });

function tell(message: FromBackend): void {
  process.send?.(message);
}

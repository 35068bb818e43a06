import type { RecordableHistogram } from "node:perf_hooks";
import { type Admissions, createAdmissions } from "./admissions.ts";
import type { OutgoingRequest } from "./clients.ts";
import { type Connection, connect } from "./connection.ts";
import { createLatencyHistogram, recordMs } from "./latency.ts";

/** The default number of connections that send requests. */
export const CONNECTIONS = 16;

export interface ClosedLoopResult {
  readonly latency: RecordableHistogram;
  readonly admissions: Admissions;
  readonly elapsedMs: number;
}

/**
 * Sends requests over several connections. Each connection sends its next request when it has a response.
 * Request n goes to the isolate with the index n modulo the number of isolates.
 *
 * @param urls the address of each isolate
 */
export async function closedLoop(
  urls: readonly URL[],
  requests: readonly OutgoingRequest[],
  connectionCount = CONNECTIONS,
): Promise<ClosedLoopResult> {
  const latency = createLatencyHistogram();
  const admissions = createAdmissions();
  // Each isolate has its own queue. From a shared queue, a slow isolate would get fewer requests.
  const nextIndex = urls.map((_, isolate) => isolate);

  async function sendAll(connection: Connection, isolate: number): Promise<void> {
    while (true) {
      const index = nextIndex[isolate] as number;
      const request = requests[index];
      if (request === undefined) return;
      nextIndex[isolate] = index + urls.length;
      const sentAt = performance.now();
      const status = await connection.send(request);
      recordMs(latency, performance.now() - sentAt);
      admissions.record(request.client, status);
    }
  }

  const connections = Array.from({ length: connectionCount }, (_, index) => {
    const isolate = index % urls.length;
    return { isolate, connection: connect(urls[isolate] as URL) };
  });
  try {
    const startedAt = performance.now();
    await Promise.all(connections.map((each) => sendAll(each.connection, each.isolate)));
    return { latency, admissions, elapsedMs: performance.now() - startedAt };
  } finally {
    await Promise.all(connections.map(({ connection }) => connection.close()));
  }
}

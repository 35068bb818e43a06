import type { RecordableHistogram } from "node:perf_hooks";
import { type Admissions, createAdmissions } from "./admissions.ts";
import type { Outgoing } from "./clients.ts";
import { type Connection, connect } from "./connection.ts";
import { createLatencyHistogram, recordMs } from "./latency.ts";

export const CONNECTIONS = 16;

/** What came of the requests that were sent. */
export type Load = {
  latency: RecordableHistogram;
  admissions: Admissions;
  elapsedMs: number;
};

/**
 * Sends requests over 16 connections, each of which sends its next one when it has an answer. With
 * several isolates, the requests go round robin.
 */
export async function closedLoop(
  urls: readonly URL[],
  requests: readonly Outgoing[],
): Promise<Load> {
  const latency = createLatencyHistogram();
  const admissions = createAdmissions();
  // Each isolate has a queue, so that one that is slow does not send its share to the others.
  const next = urls.map((_, isolate) => isolate);

  async function exhaust(connection: Connection, isolate: number): Promise<void> {
    while (true) {
      const index = next[isolate] as number;
      const outgoing = requests[index];
      if (outgoing === undefined) return;
      next[isolate] = index + urls.length;
      const sentAt = performance.now();
      const status = await connection.send(outgoing);
      recordMs(latency, performance.now() - sentAt);
      admissions.record(outgoing.client, status);
    }
  }

  const connections = Array.from({ length: CONNECTIONS }, (_, index) => {
    const isolate = index % urls.length;
    return { isolate, connection: connect(urls[isolate] as URL) };
  });
  try {
    const startedAt = performance.now();
    await Promise.all(connections.map((each) => exhaust(each.connection, each.isolate)));
    return { latency, admissions, elapsedMs: performance.now() - startedAt };
  } finally {
    await Promise.all(connections.map(({ connection }) => connection.close()));
  }
}

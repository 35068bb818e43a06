import type { RecordableHistogram } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { type Admissions, createAdmissions } from "./admissions.ts";
import type { OutgoingRequest } from "./clients.ts";
import { connect } from "./connection.ts";
import { createLatencyHistogram, recordMs } from "./latency.ts";

/** The number of connections. It is so large that every request finds a free connection. */
const CONNECTIONS = 128;

/** Latencies and admissions of the measured requests. */
export interface OpenLoopResult {
  readonly latency: RecordableHistogram;
  readonly admissions: Admissions;
}

/**
 * Sends requests at a steady rate, without waiting for responses.
 *
 * @param isMeasured selects the requests whose latency and admission are recorded
 */
export async function openLoop(
  url: URL,
  requests: readonly OutgoingRequest[],
  ratePerSecond: number,
  isMeasured: (request: OutgoingRequest) => boolean,
): Promise<OpenLoopResult> {
  const latency = createLatencyHistogram();
  const admissions = createAdmissions();
  const connection = connect(url, CONNECTIONS);

  async function send(request: OutgoingRequest): Promise<void> {
    const sentAt = performance.now();
    const status = await connection.send(request);
    if (!isMeasured(request)) return;
    recordMs(latency, performance.now() - sentAt);
    admissions.record(request.client, status);
  }

  try {
    const responses: Promise<void>[] = [];
    const startedAt = performance.now();
    for (const [index, request] of requests.entries()) {
      const waitMs = startedAt + (index * 1000) / ratePerSecond - performance.now();
      if (waitMs > 0) await delay(waitMs);
      responses.push(send(request));
    }
    await Promise.all(responses);
    return { latency, admissions };
  } finally {
    await connection.close();
  }
}

import type { RecordableHistogram } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { type Admissions, createAdmissions } from "./admissions.ts";
import type { Outgoing } from "./clients.ts";
import { connect } from "./connection.ts";
import { createLatencyHistogram, recordMs } from "./latency.ts";

/** So many that no request waits for another's answer. */
const CONNECTIONS = 128;

export type Paced = {
  /** Of the requests that are watched. */
  latency: RecordableHistogram;
  admissions: Admissions;
};

/**
 * Sends requests at a steady rate, whatever becomes of those before.
 *
 * @param watched whose latency and admissions count
 */
export async function openLoop(
  url: URL,
  requests: readonly Outgoing[],
  ratePerSecond: number,
  watched: (outgoing: Outgoing) => boolean,
): Promise<Paced> {
  const latency = createLatencyHistogram();
  const admissions = createAdmissions();
  const connection = connect(url, CONNECTIONS);

  async function send(outgoing: Outgoing): Promise<void> {
    const sentAt = performance.now();
    const status = await connection.send(outgoing);
    if (!watched(outgoing)) return;
    recordMs(latency, performance.now() - sentAt);
    admissions.record(outgoing.client, status);
  }

  try {
    const sent: Promise<void>[] = [];
    const startedAt = performance.now();
    for (const [index, outgoing] of requests.entries()) {
      const waitMs = startedAt + (index * 1000) / ratePerSecond - performance.now();
      if (waitMs > 0) await delay(waitMs);
      sent.push(send(outgoing));
    }
    await Promise.all(sent);
    return { latency, admissions };
  } finally {
    await connection.close();
  }
}

import { setTimeout as delay } from "node:timers/promises";
import type { Stage } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import type { Billing } from "../environment/subjects.ts";
import type { AdmissionSummary } from "../load/admissions.ts";
import type { Load } from "../load/closed-loop.ts";
import { type Latency, quantilesOf } from "../load/latency.ts";
import { dollarsPerMillion, type Usage } from "./dollars.ts";

/** What one subject did with one round of requests. */
export type Measurement = AdmissionSummary & {
  latency: Latency;
  requestsPerSecond: number;
  /** CPU time of the workerd process, in microseconds; undefined where it cannot be read. */
  cpuPerRequest: number | undefined;
  restCallsPerRequest: number;
  commandsPerRequest: number;
  objectCallsPerRequest: number;
  rowsPerRequest: number;
  dollarsPerMillion: number;
};

export type MeasureOptions = {
  stage: Stage;
  runtime: Runtime;
  billing: Billing;
  limit: number;
  distanceMs: number;
};

/** Sends a load, and takes what the meters show afterwards off what they showed before. */
export async function measure(
  { stage, runtime, billing, limit, distanceMs }: MeasureOptions,
  send: () => Promise<Load>,
): Promise<Measurement> {
  const before = await readUsage(stage, runtime, billing);
  const cpuBefore = runtime.cpuMicroseconds();
  const load = await send();
  // What goes on behind the last answer is part of its price.
  await delay(2 * distanceMs + 100);
  const cpuAfter = runtime.cpuMicroseconds();
  const after = await readUsage(stage, runtime, billing);

  const admissions = load.admissions.summary(limit);
  const { offered } = admissions;
  const usage: Usage = {
    restCalls: after.restCalls - before.restCalls,
    commands: after.commands - before.commands,
    // These the Worker counts anew each time that it is asked.
    objectCalls: after.objectCalls,
    rowsWritten: after.rowsWritten,
  };
  const cpu = cpuBefore === undefined || cpuAfter === undefined ? undefined : cpuAfter - cpuBefore;
  return {
    ...admissions,
    latency: quantilesOf(load.latency),
    requestsPerSecond: (offered / load.elapsedMs) * 1000,
    cpuPerRequest: cpu === undefined ? undefined : cpu / offered,
    restCallsPerRequest: usage.restCalls / offered,
    commandsPerRequest: usage.commands / offered,
    objectCallsPerRequest: usage.objectCalls / offered,
    rowsPerRequest: usage.rowsWritten / offered,
    dollarsPerMillion: dollarsPerMillion(usage, offered),
  };
}

async function readUsage(stage: Stage, runtime: Runtime, billing: Billing): Promise<Usage> {
  const [restCalls, commands, objects] = await Promise.all([
    stage.backend.restCalls(),
    stage.watch.commands(),
    billing === "durable-objects" ? readObjects(runtime) : { calls: 0, rows: 0 },
  ]);
  return { restCalls, commands, objectCalls: objects.calls, rowsWritten: objects.rows };
}

/** What bench/workers/weir-durable-object.ts has counted since it was asked last. */
async function readObjects(runtime: Runtime): Promise<{ calls: number; rows: number }> {
  // With several isolates each counts its own calls, and the first one, which has the objects, rows.
  const counts = await Promise.all(
    runtime.urls.map(async (url) => {
      const response = await fetch(new URL("/bench/counts", url));
      return (await response.json()) as { calls: number; rows: number };
    }),
  );
  return {
    calls: counts.reduce((sum, { calls }) => sum + calls, 0),
    rows: counts.reduce((sum, { rows }) => sum + rows, 0),
  };
}

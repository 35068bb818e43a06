import { setTimeout as delay } from "node:timers/promises";
import type { Environment } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import type { Billing } from "../environment/subjects.ts";
import type { AdmissionSummary } from "../load/admissions.ts";
import type { ClosedLoopResult } from "../load/closed-loop.ts";
import { type Latency, quantilesOf } from "../load/latency.ts";
import { dollarsPerMillion, type Usage } from "./dollars.ts";

/** The results of one subject in one round. */
export interface Measurement extends AdmissionSummary {
  readonly latency: Latency;
  readonly requestsPerSecond: number;
  /** CPU time of the workerd process, in microseconds; undefined if it cannot be read. */
  readonly cpuPerRequest: number | undefined;
  readonly restCallsPerRequest: number;
  readonly commandsPerRequest: number;
  readonly objectCallsPerRequest: number;
  readonly rowsPerRequest: number;
  readonly dollarsPerMillion: number;
}

export interface MeasureOptions {
  readonly environment: Environment;
  readonly runtime: Runtime;
  readonly billing: Billing;
  readonly limit: number;
  readonly redisLatencyMs: number;
}

/** Sends a load and reads all meters before and after it. */
export async function measure(
  { environment, runtime, billing, limit, redisLatencyMs }: MeasureOptions,
  sendLoad: () => Promise<ClosedLoopResult>,
): Promise<Measurement> {
  const usageBefore = await readUsage(environment, runtime, billing);
  const cpuBefore = runtime.cpuMicroseconds();
  const load = await sendLoad();
  // Some limiters still do work after the last response. The wait lets this work end, so that the
  // figures include it.
  await delay(2 * redisLatencyMs + 100);
  const cpuAfter = runtime.cpuMicroseconds();
  const usageAfter = await readUsage(environment, runtime, billing);

  const admissions = load.admissions.summary(limit);
  const { offered } = admissions;
  const usage: Usage = {
    restCalls: usageAfter.restCalls - usageBefore.restCalls,
    commands: usageAfter.commands - usageBefore.commands,
    // The Worker resets these two counts whenever it returns them, so they need no subtraction.
    objectCalls: usageAfter.objectCalls,
    rowsWritten: usageAfter.rowsWritten,
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

async function readUsage(
  { backend, redisMeter }: Environment,
  runtime: Runtime,
  billing: Billing,
): Promise<Usage> {
  const [restCalls, commands, objects] = await Promise.all([
    backend.restCalls(),
    redisMeter.commands(),
    billing === "durable-objects" ? takeObjectCounts(runtime) : { calls: 0, rows: 0 },
  ]);
  return { restCalls, commands, objectCalls: objects.calls, rowsWritten: objects.rows };
}

interface ObjectCounts {
  readonly calls: number;
  readonly rows: number;
}

/** Reads the counts of bench/workers/weir-durable-object.ts, and resets them to 0. */
async function takeObjectCounts(runtime: Runtime): Promise<ObjectCounts> {
  // Each isolate counts its own calls. Only the first isolate has objects, so only this isolate
  // counts rows.
  const counts = await Promise.all(
    runtime.urls.map(async (url) => {
      const response = await fetch(new URL("/bench/counts", url));
      return (await response.json()) as ObjectCounts;
    }),
  );
  return {
    calls: counts.reduce((sum, { calls }) => sum + calls, 0),
    rows: counts.reduce((sum, { rows }) => sum + rows, 0),
  };
}

import type { Environment } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import { weirConfig } from "../environment/subjects.ts";
import { median } from "./median.ts";

/** A limit so high that leases have their largest size. */
const LIMIT = 100_000_000;

export interface DecisionCpu {
  /** CPU time of one decision with its response fields, in microseconds. */
  readonly microseconds: number;
  /** REST calls for each decision. The figures are valid only if this is close to 0. */
  readonly restCallsPerDecision: number;
}

/**
 * Measures the CPU time of a decision from memory. A Worker runs an app many times within one
 * request, first with a limiter and then without it. The result is the difference of the CPU times.
 *
 * @returns undefined if CPU time cannot be read
 * @throws {Error} when the Worker answers with an error
 */
export async function measureDecisionCpu(
  environment: Environment,
  redisLatencyMs: number,
  { rounds, decisions }: { readonly rounds: number; readonly decisions: number },
): Promise<DecisionCpu | undefined> {
  const { backend } = environment;
  const CONFIG = JSON.stringify({ ...weirConfig(LIMIT), prefix: "decision-loop" });
  const options = { worker: "decision-loop.ts", vars: { CONFIG } };
  const runtime = await environment.startWorker(options, redisLatencyMs);
  try {
    await runLoop(runtime, "/limited", decisions);
    await runLoop(runtime, "/bare", decisions);
    const costs: number[] = [];
    const calls: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const callsBefore = await backend.restCalls();
      const limited = await runLoop(runtime, "/limited", decisions);
      calls.push(((await backend.restCalls()) - callsBefore) / limited.decisions);
      const bare = await runLoop(runtime, "/bare", decisions);
      if (limited.cpu === undefined || bare.cpu === undefined) return undefined;
      costs.push(limited.cpu / limited.decisions - bare.cpu / bare.decisions);
    }
    return { microseconds: median(costs), restCallsPerDecision: median(calls) };
  } finally {
    await runtime.stop();
  }
}

async function runLoop(
  runtime: Runtime,
  path: string,
  wantedDecisions: number,
): Promise<{ decisions: number; cpu: number | undefined }> {
  const before = runtime.cpuMicroseconds();
  const response = await fetch(new URL(`${path}?decisions=${wantedDecisions}`, runtime.urls[0]));
  if (!response.ok) throw new Error(`The decision loop answered with status ${response.status}.`);
  const { decisions } = (await response.json()) as { decisions: number };
  const after = runtime.cpuMicroseconds();
  const cpu = before === undefined || after === undefined ? undefined : after - before;
  return { decisions, cpu };
}

import type { Stage } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import { weirConfig } from "../environment/subjects.ts";
import { median } from "./median.ts";

/** A limit so high that leases are as large as they get. */
const LIMIT = 100_000_000;

export type DecisionCpu = {
  /** CPU time of one decision with its response fields, in microseconds. */
  microseconds: number;
  /** REST calls for each decision: next to none, or the decisions were not from memory. */
  restCallsPerDecision: number;
};

/**
 * What a decision costs that needs nobody else: the CPU time of many in a row, less that of as many
 * requests to the same app without a limiter. Undefined where CPU time cannot be read.
 */
export async function measureDecisionCpu(
  stage: Stage,
  distanceMs: number,
  { rounds, decisions }: { rounds: number; decisions: number },
): Promise<DecisionCpu | undefined> {
  const CONFIG = JSON.stringify({ ...weirConfig(LIMIT), prefix: "decision-loop" });
  const runtime = await stage.start({ worker: "decision-loop.ts", vars: { CONFIG } }, distanceMs);
  try {
    await loop(runtime, "/limited", decisions);
    await loop(runtime, "/bare", decisions);
    const costs: number[] = [];
    const calls: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const callsBefore = await stage.backend.restCalls();
      const limited = await loop(runtime, "/limited", decisions);
      calls.push(((await stage.backend.restCalls()) - callsBefore) / limited.decisions);
      const bare = await loop(runtime, "/bare", decisions);
      if (limited.cpu === undefined || bare.cpu === undefined) return undefined;
      costs.push(limited.cpu / limited.decisions - bare.cpu / bare.decisions);
    }
    return { microseconds: median(costs), restCallsPerDecision: median(calls) };
  } finally {
    await runtime.stop();
  }
}

async function loop(
  runtime: Runtime,
  path: string,
  wanted: number,
): Promise<{ decisions: number; cpu: number | undefined }> {
  const before = runtime.cpuMicroseconds();
  const response = await fetch(new URL(`${path}?decisions=${wanted}`, runtime.urls[0]));
  if (!response.ok) throw new Error(`The loop of decisions ended with ${response.status}.`);
  const { decisions } = (await response.json()) as { decisions: number };
  const after = runtime.cpuMicroseconds();
  const cpu = before === undefined || after === undefined ? undefined : after - before;
  return { decisions, cpu };
}

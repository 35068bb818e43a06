import { availableParallelism } from "node:os";
import { URL } from "node:url";
import { Worker } from "node:worker_threads";
import type { Scenario } from "./scenario.ts";
import type { Summary } from "./summary.ts";

/**
 * Runs scenarios on all cores.
 *
 * @param onDone receives each summary when its scenario ends
 * @returns the summaries in the order of the scenarios
 */
export async function runOnThreads(
  scenarios: readonly Scenario[],
  seed: number,
  onDone: (summary: Summary) => void,
): Promise<Summary[]> {
  const summaries = new Map<string, Summary>();
  const pending = scenarios.map(({ name }) => name);
  const threads = Math.min(availableParallelism(), pending.length);
  await Promise.all(
    Array.from({ length: threads }, () =>
      runOneByOne(pending, seed, (summary) => {
        summaries.set(summary.name, summary);
        onDone(summary);
      }),
    ),
  );
  return scenarios.map(({ name }) => summaries.get(name) as Summary);
}

/**
 * Runs scenarios on one thread until none is left.
 *
 * @param pending the names of the scenarios that have not started, from which all threads take names
 */
function runOneByOne(
  pending: string[],
  workerData: number,
  onDone: (summary: Summary) => void,
): Promise<void> {
  const thread = new Worker(new URL("./worker.ts", import.meta.url), { workerData });
  const startNext = () => {
    const name = pending.shift();
    if (name === undefined) return false;
    thread.postMessage(name);
    return true;
  };
  return new Promise<void>((resolve, reject) => {
    thread.on("error", reject);
    thread.on("message", (summary: Summary) => {
      onDone(summary);
      if (!startNext()) resolve();
    });
    if (!startNext()) resolve();
  }).finally(() => thread.terminate());
}

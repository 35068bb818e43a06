import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Scenario } from "./scenario.ts";
import type { Summary } from "./summary.ts";
import type { WorkerData } from "./worker.ts";

/**
 * Runs scenarios on all cores.
 *
 * @returns in the order of the scenarios, whatever the order in which they are done
 */
export async function runOnThreads(
  scenarios: readonly Scenario[],
  data: WorkerData,
  onDone: (summary: Summary) => void,
): Promise<Summary[]> {
  const summaries = new Map<string, Summary>();
  const waiting = scenarios.map(({ name }) => name);
  const threads = Math.min(availableParallelism(), waiting.length);
  await Promise.all(
    Array.from({ length: threads }, () =>
      runOneByOne(waiting, data, (summary) => {
        summaries.set(summary.name, summary);
        onDone(summary);
      }),
    ),
  );
  return scenarios.map(({ name }) => summaries.get(name) as Summary);
}

/** @param waiting names of scenarios: who starts one takes it off */
function runOneByOne(
  waiting: string[],
  workerData: WorkerData,
  onDone: (summary: Summary) => void,
): Promise<void> {
  const thread = new Worker(new URL("./worker.ts", import.meta.url), { workerData });
  const next = () => {
    const name = waiting.shift();
    if (name === undefined) return false;
    thread.postMessage(name);
    return true;
  };
  return new Promise<void>((resolve, reject) => {
    thread.on("error", reject);
    thread.on("message", (summary: Summary) => {
      onDone(summary);
      if (!next()) resolve();
    });
    if (!next()) resolve();
  }).finally(() => thread.terminate());
}

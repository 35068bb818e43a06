/** A thread that runs scenarios: time is a thread's own. */
import { parentPort, workerData } from "node:worker_threads";
import { allScenarios } from "./scenarios/all.ts";
import { simulateRuns } from "./simulation.ts";
import { summaryOf } from "./summary.ts";

/** What a thread is started with. */
export interface WorkerData {
  readonly seed: number;
  readonly log: string | undefined;
}

const { seed, log } = workerData as WorkerData;
const scenarios = new Map(allScenarios(log).map((scenario) => [scenario.name, scenario]));

parentPort?.on("message", async (name: string) => {
  const scenario = scenarios.get(name);
  if (!scenario) throw new Error(`there is no scenario "${name}"`);
  // What it throws ends the thread, and is told to who started it.
  parentPort?.postMessage(summaryOf(scenario, await simulateRuns(scenario, seed)));
});

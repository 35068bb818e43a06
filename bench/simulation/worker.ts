/**
 * A thread that runs scenarios one by one, because a simulation replaces the clock of its thread.
 */
import { parentPort, workerData } from "node:worker_threads";
import { allScenarios } from "./scenarios/all.ts";
import { simulateRuns } from "./simulation.ts";
import { summaryOf } from "./summary.ts";

const seed: number = workerData;
const scenarios = new Map(allScenarios().map((scenario) => [scenario.name, scenario]));

parentPort?.on("message", async (name: string) => {
  const scenario = scenarios.get(name);
  if (!scenario) throw new Error(`There is no scenario "${name}".`);
  // An error ends the thread, and the parent receives it as the thread's "error" event.
  parentPort?.postMessage(summaryOf(scenario, await simulateRuns(scenario, seed)));
});

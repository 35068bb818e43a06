import { spawnSync } from "node:child_process";

/** Whether the machine has promtool, a program of Prometheus that checks metrics and rules. */
export const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

if (!hasPromtool) {
  if (process.env.WEIR_DEMAND_PROMTOOL)
    throw new Error("WEIR_DEMAND_PROMTOOL is set, but there is no promtool");
  console.warn(
    "The tests with promtool are left out, because there is no promtool. Debian has it: apt-get install prometheus",
  );
}

/** Runs promtool. @returns its exit status and all that it has printed */
export function promtool(args: readonly string[], input?: string) {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  return { status, output: stdout + stderr };
}

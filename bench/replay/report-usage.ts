/**
 * `node --import` loads this file before a program. When the program ends, it writes to the descriptor 3, as JSON, the
 * CPU time and the most memory that the process had at once.
 */
import { readFileSync, writeSync } from "node:fs";

process.on("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
  writeSync(3, JSON.stringify({ cpuSeconds, peakBytes: (highWaterMark() ?? maxRSS) * 1024 }));
});

/** The most memory in KiB; undefined outside Linux. On Linux, maxRSS would include the parent's memory at its fork. */
function highWaterMark(): number | undefined {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return kib === undefined ? undefined : Number(kib);
  } catch {
    return undefined;
  }
}

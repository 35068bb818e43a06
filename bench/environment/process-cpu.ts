import { readdirSync, readFileSync } from "node:fs";

/** Linux counts a process's time in hundredths of a second, whatever the kernel's own tick. */
const TICK_MICROSECONDS = 10_000;

/**
 * CPU time that a process has used so far, in the kernel and out of it, all threads together, in
 * microseconds; undefined where there is no /proc, as on macOS.
 */
export function cpuMicroseconds(pid: number): number | undefined {
  const { userTicks, systemTicks } = readStat(pid) ?? {};
  if (userTicks === undefined || systemTicks === undefined) return undefined;
  return (userTicks + systemTicks) * TICK_MICROSECONDS;
}

/** The processes of one name that this process has started and that still run; none without /proc. */
export function childrenNamed(name: string): number[] {
  let entries: string[];
  try {
    entries = readdirSync("/proc");
  } catch {
    return [];
  }
  return entries
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      const stat = readStat(pid);
      return stat?.name === name && stat.parent === process.pid;
    });
}

type Stat = { name: string; parent: number; userTicks: number; systemTicks: number };

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function readStat(pid: number): Stat | undefined {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // It has ended in the meantime, or there is no /proc.
    return undefined;
  }
  // The name is in brackets, and may hold blanks and brackets itself.
  const name = line.slice(line.indexOf("(") + 1, line.lastIndexOf(")"));
  const rest = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(rest[number - 3]);
  return { name, parent: field(4), userTicks: field(14), systemTicks: field(15) };
}

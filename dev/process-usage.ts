import { readdirSync, readFileSync } from "node:fs";

/**
 * The unit of CPU time in /proc, in microseconds. On Linux it is always 1/100 s and does not depend
 * on the kernel's tick rate.
 */
const TICK_MICROSECONDS = 10_000;

/**
 * Returns the CPU time of all threads of a process so far, in user and kernel mode, in
 * microseconds. The result is undefined if there is no /proc, as on macOS.
 */
export function cpuMicroseconds(pid: number): number | undefined {
  const { userTicks, systemTicks } = readStat(pid) ?? {};
  if (userTicks === undefined || systemTicks === undefined) return undefined;
  return (userTicks + systemTicks) * TICK_MICROSECONDS;
}

/** Returns the physical memory that a process uses, in bytes; undefined if there is no /proc. */
export function residentBytes(pid: number): number | undefined {
  const status = readIfPresent(`/proc/${pid}/status`) ?? "";
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

/**
 * Returns the ids of this process's child processes that have the given name; an empty list if
 * there is no /proc.
 */
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

interface Stat {
  readonly name: string;
  readonly parent: number;
  readonly userTicks: number;
  readonly systemTicks: number;
}

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function readStat(pid: number): Stat | undefined {
  const line = readIfPresent(`/proc/${pid}/stat`);
  if (line === undefined) return undefined;
  // The name is in parentheses and may itself contain spaces and parentheses.
  const name = line.slice(line.indexOf("(") + 1, line.lastIndexOf(")"));
  const rest = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(rest[number - 3]);
  return { name, parent: field(4), userTicks: field(14), systemTicks: field(15) };
}

/** Returns the text of a file in /proc; undefined if the process has ended or there is no /proc. */
function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

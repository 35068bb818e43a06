import { readdirSync, readFileSync } from "node:fs";

/** Memory of a process that is really in use, in bytes; undefined where there is no /proc. */
export function residentBytes(pid: number): number | undefined {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
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
    .filter((entry) => {
      const status = read(`/proc/${entry}/status`);
      const parent = /^PPid:\s+(\d+)$/m.exec(status)?.[1];
      return parent === `${process.pid}` && status.startsWith(`Name:\t${name}\n`);
    })
    .map(Number);
}

/** A process may end at any time, and then there is nothing to read. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

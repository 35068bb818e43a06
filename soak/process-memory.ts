import { readFileSync } from "node:fs";

/** Memory of a process that is really in use, in bytes; undefined where there is no /proc. */
export function residentBytes(pid: number): number | undefined {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

/** A process may end at any time, and then there is nothing to read. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";

/** A folder for what the emulated platform stores. */
export type Scratch = {
  /** A folder of one's own in it, empty and not made yet. */
  folder(): string;
  remove(): Promise<void>;
};

/**
 * In memory where the system has files in memory. On a disk, an object that stores something for
 * the first time waits for it several times over, and all other objects with it: with many clients
 * that alone would be measured, and Cloudflare's objects do not share a disk.
 */
export async function makeScratch(): Promise<Scratch> {
  const root = await mkdtemp(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "weir-bench-"));
  let folders = 0;
  return {
    folder: () => join(root, `${folders++}`),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

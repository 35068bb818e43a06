import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in memory, on Linux. */
const MEMORY = "/dev/shm";

/** The folder for all data that the emulated platform stores. */
export interface Scratch {
  /** Returns the path of a new subfolder, which does not exist yet. */
  nextFolder(): string;
  remove(): Promise<void>;
}

/**
 * Creates the folder, in memory if possible. On a disk, an emulated object waits for several syncs when it stores
 * something for the first time, and all other objects wait with it. So with many clients, the bench would measure the
 * disk, although objects on Cloudflare do not share a disk.
 */
export async function createScratch(): Promise<Scratch> {
  const root = await mkdtemp(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "weir-bench-"));
  let folders = 0;
  return {
    nextFolder: () => join(root, `${folders++}`),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

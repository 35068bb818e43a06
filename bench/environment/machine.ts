import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, cpus, platform, release, totalmem } from "node:os";
import { dirname, join } from "node:path";

/** The machine of a run. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
}

export function readMachine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? "unknown",
    cores: cores.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
  };
}

const PACKAGES = [
  "workerd",
  "miniflare",
  "hono",
  "@upstash/redis",
  "@upstash/ratelimit",
  "hono-rate-limiter",
];

/** The versions of Node, of Redis and of the packages that the bench measures or runs. */
export function readVersions(redisVersion: string): Record<string, string> {
  const packages = PACKAGES.map((name) => [name, packageVersion(name)]);
  return { node: process.versions.node, redis: redisVersion, ...Object.fromEntries(packages) };
}

function packageVersion(name: string): string {
  const { resolve } = createRequire(import.meta.url);
  // Not every package exports its package.json, so this code searches the folders above the module.
  for (let folder = dirname(resolve(name)); ; folder = dirname(folder)) {
    try {
      const found = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      if (found.name === name && found.version) return found.version;
    } catch {
      // This folder has no package.json, so the loop continues with the folder above it.
    }
    if (folder === dirname(folder)) return "unknown";
  }
}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, cpus, platform, release, totalmem } from "node:os";
import { dirname, join } from "node:path";

/** What the figures were taken on. */
export type Machine = {
  cpu: string;
  cores: number;
  memoryGiB: number;
  system: string;
};

export function machine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? "unknown",
    cores: cores.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
  };
}

const MEASURED = [
  "workerd",
  "miniflare",
  "hono",
  "@upstash/redis",
  "@upstash/ratelimit",
  "hono-rate-limiter",
];

/** What ran: Node, Redis, and the packages that are measured or run them. */
export function versions(redisVersion: string): Record<string, string> {
  const packages = MEASURED.map((name) => [name, packageVersion(name)]);
  return { node: process.versions.node, redis: redisVersion, ...Object.fromEntries(packages) };
}

function packageVersion(name: string): string {
  const { resolve } = createRequire(import.meta.url);
  // workerd is miniflare's own dependency, and not all packages export their package.json.
  for (let folder = dirname(resolve(name)); ; folder = dirname(folder)) {
    try {
      const found = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      if (found.name === name && found.version) return found.version;
    } catch {
      // No package.json here: further up.
    }
    if (folder === dirname(folder)) return "unknown";
  }
}

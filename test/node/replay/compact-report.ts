import { expect } from "vitest";
import { type LogOptions, openLogs } from "../../../cli/logs/open-logs.ts";
import type { ReplayReport } from "../../../cli/replay/report.ts";
import { createReplayEngine, replayLogs } from "../../../cli/replay/run-replay.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";

/** Configurations whose rules the compact engine can decide. */
export const CONFIGS: readonly ConfigInput[] = [
  {
    rules: [
      { name: "address", limit: 3, window: "1m" },
      { name: "login", match: { methods: ["POST"], paths: ["/login"] }, limit: 1, window: "1m" },
    ],
  },
  { store: "memory", rules: [{ name: "all", limit: 5, window: "10s", cost: 2 }] },
  {
    store: "durable-object",
    ipv6Prefix: 56,
    rules: [
      { name: "trial", limit: 1, window: "30s", mode: "shadow" },
      { name: "any", limit: 2, window: "20s" },
      { name: "none", match: { paths: ["/closed/*"] }, limit: 0, window: "1m" },
      { name: "free", match: { hosts: ["example.com"] }, limit: 0, window: "5m", mode: "shadow" },
    ],
  },
  {
    clock: "redis",
    caseSensitivePaths: true,
    rules: [
      {
        name: "two",
        match: { except: { paths: ["/health", "/a/:b"], methods: ["GET", "HEAD"] } },
        limits: [
          { limit: 2, window: "10s" },
          { limit: 6, window: "2m" },
        ],
        start: "2026-11-22T00:00:07Z",
      },
      { name: "options", match: { methods: ["OPTIONS"] }, limit: 1, window: "1m" },
      { name: "dear", limit: 3, window: "1m", cost: 4, mode: "shadow" },
    ],
  },
  { rules: [{ name: "api", match: { hosts: ["*.example.com"] }, limit: 1, window: "1m" }] },
];

interface Bounds {
  readonly maxClients?: number | undefined;
  readonly firstCapacity?: number;
}

/** Returns the report of the compact engine or of the general one. */
export async function reportOf(
  isCompact: boolean,
  input: ConfigInput,
  options: LogOptions,
  { maxClients, firstCapacity }: Bounds = {},
): Promise<ReplayReport> {
  const config = defineConfig(input);
  const logs = await openLogs(options);
  const engine = createReplayEngine(config, logs.facts, { firstCapacity });
  const replayed = { file: "weir.config.ts", config, engine };
  expect(engine.compact).toBeDefined();
  return replayLogs({
    files: ["access.log"],
    logs,
    replayed,
    isCompact,
    maxClients,
  });
}

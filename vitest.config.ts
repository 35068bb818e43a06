import { availableParallelism } from "node:os";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { guideConfigs } from "./dev/vitest-guides.ts";

export default defineConfig({
  test: {
    // One Redis for the whole run; both projects reach it by inject("redis").
    globalSetup: ["dev/vitest-redis.ts"],
    // Many tests start programs, on a machine that may be busy with other tests: what is promised to
    // be quick is measured by the test that says so.
    testTimeout: 180_000,
    // Vitest's default leaves one core free. On two cores, all test files would then run one by one.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        plugins: [
          cloudflareTest({ wrangler: { configPath: "./wrangler.toml" } }),
          // The configurations on the pages of docs/guides/, as modules.
          guideConfigs(),
        ],
        test: { name: "workerd", include: ["test/{workerd,seeds}/**/*.test.ts"] },
      },
      {
        extends: true,
        test: {
          name: "node",
          environment: "node",
          include: ["test/{node,chaos,evasion}/**/*.test.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          environment: "node",
          include: ["test/browser/**/*.test.ts"],
        },
      },
    ],
  },
});

import { availableParallelism } from "node:os";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { guideConfigs } from "./dev/vitest-guides.ts";
import { QuietReporter } from "./dev/vitest-reporter.ts";

/**
 * Tests that count the timers or log lines of their isolate, or use the object that all isolates share. They share no
 * isolate with the other tests in workerd. Each of these two groups shares one isolate for each worker of Vitest,
 * because workerd takes longer to start than most files to run.
 */
const ALONE = [
  "test/workerd/deployment-mode.test.ts",
  "test/workerd/control/control-object.test.ts",
  "test/workerd/request/custom-key-calls.test.ts",
  "test/workerd/stores/breaker.test.ts",
  "test/workerd/stores/deadline.test.ts",
  "test/workerd/stores/upstash/upstash-store.test.ts",
];

/** Tests that measure time or memory. Each has a process of its own, because other tests would change its figures. */
const MEASURES = [
  "test/node/{llm,request}/linear.test.ts",
  "test/node/{request/tier-time,statistics/memory}.test.ts",
  "test/node/stores/{memory-store-time,isolate/cache-memory}.test.ts",
];

/** Tests of tools, pages and packages. They need minutes. `npm run check` runs them and those that measure. */
const TOOLS = ["test/node/{bench,create,dev,docs,examples,fuzz,package,scripts}/**/*.test.ts"];

const inWorkerd = {
  extends: true as const,
  plugins: [
    cloudflareTest({ wrangler: { configPath: "./wrangler.toml" } }),
    // The configurations on the pages of docs/guides/, as modules.
    guideConfigs(),
  ],
};
const setupFiles = ["dev/vitest-workerd.ts"];

export default defineConfig({
  test: {
    reporters: [new QuietReporter(), ...(process.env.GITHUB_ACTIONS ? ["github-actions"] : [])],
    // Prints the log lines of tests that fail.
    silent: "passed-only",
    // One Redis for the whole run; both projects reach it by inject("redis").
    globalSetup: ["dev/vitest-setup.ts"],
    // Many tests start programs, on a machine that may be busy with other tests: what is promised to
    // be quick is measured by the test that says so.
    testTimeout: 180_000,
    // Vitest's default leaves one core free. On two cores, all test files would then run one by one.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        ...inWorkerd,
        test: {
          name: "workerd",
          setupFiles,
          isolate: false,
          include: ["test/{workerd,seeds}/**/*.test.ts"],
          exclude: ALONE,
        },
      },
      {
        ...inWorkerd,
        test: {
          name: "workerd-alone",
          setupFiles,
          isolate: false,
          include: ALONE,
        },
      },
      {
        extends: true,
        test: {
          name: "node",
          environment: "node",
          isolate: false,
          include: ["test/{node,chaos,evasion}/**/*.test.ts"],
          exclude: [...TOOLS, ...MEASURES],
        },
      },
      {
        extends: true,
        test: { name: "tools", environment: "node", isolate: false, include: TOOLS },
      },
      { extends: true, test: { name: "tools-measures", environment: "node", include: MEASURES } },
      {
        extends: true,
        test: {
          name: "browser",
          environment: "node",
          isolate: false,
          include: ["test/browser/**/*.test.ts"],
        },
      },
    ],
  },
});

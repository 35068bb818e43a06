import { globSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test, vi } from "vitest";
import { runWeir } from "../cli/run-weir.ts";

// Each test starts a process that loads wrangler. The machine may be busy with other tests.
vi.setConfig({ testTimeout: 60_000 });

const configs = globSync("examples/**/weir.config.ts", {
  exclude: (path) => path.endsWith("node_modules"),
});

test("there are nine examples", () => {
  expect(configs).toHaveLength(9);
});

test.each(configs)("%s passes weir check --strict", async (config) => {
  const { code, stdout, stderr } = await runWeir(["check", "--strict"], dirname(config));
  expect(stdout + stderr).not.toContain("warning");
  expect(code).toBe(0);
});

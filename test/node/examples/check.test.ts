import { globSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { callWeir } from "../cli/run-weir.ts";

const configs = globSync("examples/**/weir.config.ts", {
  exclude: (path) => path.endsWith("node_modules"),
});

test("there are ten examples", () => {
  expect(configs).toHaveLength(10);
});

test.each(configs)("%s passes weir check --strict", async (config) => {
  const { code, stdout, stderr } = await callWeir(["check", "--strict"], dirname(config));
  expect(stdout + stderr).not.toContain("warning");
  expect(code).toBe(0);
});

import { describe, expect, test } from "vitest";
import { check } from "./run-weir.ts";

const RULE = `{ name: "api", key: "custom:plan", limit: 5, window: "1m", onError: "closed" }`;

/** Returns a weir.config.ts with a rule by `custom:plan`, and with these functions. */
function configWith(functions: string): string {
  return `import { defineConfig } from "edge-weir/config";
    export default defineConfig({ rules: [${RULE}], ${functions} });`;
}

const TYPED = `custom: {
  keys: {
    async plan(request: Request, { env }: { env: { PLANS: { get(key: string): Promise<string> } } }) {
      return env.PLANS.get("a-secret-in-the-source");
    },
  },
}`;

describe("check of a configuration with functions", () => {
  test.each([[[]], [["--json"]]])(
    "accepts them, and prints no source of a function: %j",
    async (args) => {
      const { code, stdout, stderr } = await check("weir.ts", configWith(TYPED), ...args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("api");
      expect(stdout).not.toContain("a-secret");
    },
  );

  test.each([
    ["defineConfig", configWith("")],
    ["a plain object", `export default { rules: [${RULE}] };`],
  ])("names the cure for a missing function: %s", async (_, source) => {
    const { code, stdout, stderr } = await check("weir.ts", source);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('got "custom:plan"');
    expect(stdout + stderr).toContain(
      "Add custom: { keys: { plan: (request) => … } } beside rules",
    );
    expect(stdout + stderr).not.toContain("is ok");
  });
});

test("check shows that a rule for programs counts no HTTP request", async () => {
  const rules = [
    { name: "tokens", for: "programs", key: "custom:account", limit: 9, window: "1d" },
  ];
  const { code, stdout } = await check("rules.json", { rules });
  expect(stdout.trimEnd().split("\n").at(-1)?.split(/ {2,}/)).toEqual([
    "tokens",
    "custom:account",
    "9 per 1d",
    "none, only calls of programs",
  ]);
  expect(code).toBe(0);
});

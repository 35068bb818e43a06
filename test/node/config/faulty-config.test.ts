import { build } from "esbuild";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  createFaultyConfig,
  faultsOfFaultyConfig,
  isLocalWorkerd,
} from "../../../src/config/define.ts";
import { defineConfig } from "../../../src/config/index.ts";

/** A Worker whose configuration has a fault. */
const FAULTY_WORKER = `
  import { defineConfig } from "./config/index.ts";
  import { weir } from "./index.ts";
  export default weir(defineConfig({ rules: [{ name: "all", limit: "5", window: "1m" } as never] }));
`;

/** Bundles the Worker as wrangler does, which replaces NODE_ENV by a constant. */
async function bundle(nodeEnv: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: FAULTY_WORKER, loader: "ts", resolveDir: "src" },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
    define: { "globalThis.process.env.NODE_ENV": JSON.stringify(nodeEnv) },
  });
  return outputFiles.map(({ text }) => text).join("");
}

const RESPONSE_TEXT = "Weir's configuration has faults. Correct the file";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

describe("the substitute for a faulty configuration", () => {
  it("is in no bundle for production", async () => {
    expect(await bundle("development")).toContain(RESPONSE_TEXT);
    const production = await bundle("production");
    expect(production).not.toContain(RESPONSE_TEXT);
    expect(production).not.toContain("NODE_ENV");
  });

  // Miniflare gives every module the URL of a file, so this test cannot start a deployed module.
  it.each([
    { module: "worker.js", isLocal: false },
    { module: "file:///project/.wrangler/tmp/dev-a/worker.js", isLocal: true },
  ])("is used by a bundle for development in $module: $isLocal", ({ module, isLocal }) => {
    const stack = `Error\n    at ${module}:3:276`;
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    vi.stubGlobal(
      "Error",
      class extends Error {
        override readonly stack = stack;
      },
    );
    expect(isLocalWorkerd()).toBe(isLocal);
  });

  it("is recognised by another copy of Weir", async () => {
    const faults = [{ path: "rules", code: "missing", message: "a fault" }] as const;
    vi.resetModules();
    const other = await import("../../../src/config/define.ts");
    expect(other.faultsOfFaultyConfig).not.toBe(faultsOfFaultyConfig);
    expect(other.faultsOfFaultyConfig(createFaultyConfig(faults))).toBe(faults);
  });

  it("has no effect in Node, where defineConfig throws with every NODE_ENV", () => {
    vi.stubEnv("NODE_ENV", "development");
    expect(() => defineConfig({ rules: [{ name: "all", limit: 0.5, window: "1m" }] })).toThrow(
      "rules[0].limit",
    );
  });
});

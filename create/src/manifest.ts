import type { ProjectOptions } from "./project-options.ts";
import { HONO } from "./versions.ts";

/**
 * Packages of wrangler with scripts that npm and pnpm would ask about. Each script only repairs
 * incomplete installations, so the project allows none.
 */
const INSTALL_SCRIPTS = { esbuild: false, fsevents: false, sharp: false, workerd: false };

/** Returns the files that tell the package manager what to install: their paths and contents. */
export function projectManifest(options: ProjectOptions): Record<string, string> {
  const { template, texts, edgeWeir, toolchain, packageManager } = options;
  const manifest = {
    name: texts.name,
    private: true,
    type: "module",
    scripts: {
      dev:
        template === "service"
          ? "wrangler dev -c wrangler.toml -c dev/wrangler.toml"
          : "node dev/start.mjs",
      test: "vitest run",
      check: "weir check --strict && tsc",
      deploy: "wrangler deploy --env production",
      "deploy:staging": "wrangler deploy --env staging",
    },
    dependencies: { "edge-weir": edgeWeir, hono: HONO },
    devDependencies: toolchain.devDependencies,
    ...(packageManager === "npm" && { allowScripts: INSTALL_SCRIPTS }),
  };
  return {
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    ...(packageManager === "pnpm" && { "pnpm-workspace.yaml": pnpmSettings() }),
  };
}

function pnpmSettings(): string {
  const lines = Object.keys(INSTALL_SCRIPTS).map((name) => `  ${name}: false`);
  return `# The install scripts of these packages do not run. wrangler works without them.\nallowBuilds:\n${lines.join("\n")}\n`;
}

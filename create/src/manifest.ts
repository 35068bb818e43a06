import type { NewTemplate, StoreName } from "./fields.ts";
import type { ProjectOptions } from "./project-options.ts";
import { HONO } from "./versions.ts";

/**
 * Packages of wrangler with scripts that npm and pnpm would ask about. Each script only repairs
 * incomplete installations, so the project allows none.
 */
const INSTALL_SCRIPTS = { esbuild: false, fsevents: false, sharp: false, workerd: false };

/** The descriptions that a Deploy to Cloudflare button shows beside the bindings. */
const BINDINGS = {
  COUNTERS: {
    description: "The Durable Objects that hold the counters, if Upstash Redis does not hold them.",
  },
  WEIR_CONTROL: {
    description: "The statistics, live overrides and audit list of operators.",
  },
  ORIGIN_URL: { description: "The URL to which Weir forwards requests." },
  API: { description: "The Worker to which Weir forwards requests." },
  UPSTASH_REDIS_REST_URL: {
    description: "The URL of the Redis database that holds the counters. Optional.",
  },
  UPSTASH_REDIS_REST_TOKEN: { description: "The token of this database." },
  WEIR_PREFIX: { description: "The first part of all stored keys." },
};

/** The names of the bindings that each template has. */
const BINDINGS_OF: Readonly<Record<NewTemplate, readonly (keyof typeof BINDINGS)[]>> = {
  route: [],
  "custom-domain": ["ORIGIN_URL"],
  service: ["API"],
};

function bindingsOf(template: NewTemplate, store: StoreName): object {
  const upstash = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"] as const;
  const names = [
    "COUNTERS" as const,
    "WEIR_CONTROL" as const,
    ...BINDINGS_OF[template],
    ...(store === "upstash" ? upstash : []),
    "WEIR_PREFIX" as const,
  ];
  return Object.fromEntries(names.map((name) => [name, BINDINGS[name]]));
}

/** Returns the path and the content of each file that lists the packages to install. */
export function projectManifest(options: ProjectOptions): Record<string, string> {
  const { template, texts, store, edgeWeir, toolchain, packageManager } = options;
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
    cloudflare: { bindings: bindingsOf(template, store) },
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

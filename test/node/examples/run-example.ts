import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { Miniflare, type MiniflareOptions } from "miniflare";
import { parse } from "smol-toml";

const EXAMPLES = join(import.meta.dirname, "../../../examples");

type Worker = MiniflareOptions["workers"][number];
type Bindings = NonNullable<Worker["config"]["env"]>;

/** The fields of an example's wrangler.toml that these tests use. An import of wrangler would take seconds. */
interface WranglerFile {
  readonly name: string;
  readonly compatibility_date: string;
  readonly compatibility_flags?: string[];
  readonly vars?: Readonly<Record<string, unknown>>;
  readonly durable_objects?: {
    readonly bindings: readonly { readonly name: string; readonly class_name: string }[];
  };
  readonly services?: readonly {
    readonly binding: string;
    readonly service: string;
    readonly entrypoint?: string;
  }[];
}

export type RunningExample = AsyncDisposable & {
  /** The URL of the first Worker. */
  url: URL;
};

/**
 * Runs an example's Workers in workerd, as their wrangler.toml configures them.
 *
 * @param folders the Workers' folders in examples/; requests of the test go to the first Worker
 * @param vars the vars that replace those of the first Worker
 * @param compatibilityDate the compatibility date that all Workers get instead of their own
 */
export async function runExample(
  folders: [string, ...string[]],
  vars: Record<string, string> = {},
  compatibilityDate?: string,
): Promise<RunningExample> {
  const workers = await Promise.all(
    folders.map((folder, index) => workerIn(folder, index === 0 ? vars : {}, compatibilityDate)),
  );
  const [first] = workers as [Worker];
  const exposed = { ...first, dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false } };
  const runtime = new Miniflare({ workers: [exposed, ...workers.slice(1)] });
  const stop = () => runtime.dispose();
  try {
    return {
      url: await runtime.unsafeGetDirectURL(first.config.name),
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function workerIn(
  folder: string,
  vars: Record<string, string>,
  compatibilityDate?: string,
): Promise<Worker> {
  const path = join(EXAMPLES, folder);
  const toml = readFileSync(join(path, "wrangler.toml"), "utf8");
  const wrangler = parse(toml) as unknown as WranglerFile;
  const { name } = wrangler;
  const env: Bindings = {};
  for (const [key, value] of Object.entries({ ...wrangler.vars, ...vars })) {
    env[key] = { type: "text", value: String(value) };
  }
  const exports: NonNullable<Worker["config"]["exports"]> = {};
  for (const { name: binding, class_name } of wrangler.durable_objects?.bindings ?? []) {
    env[binding] = { type: "durable-object", worker: name, exportName: class_name };
    exports[class_name] = { type: "durable-object", storage: "sqlite" };
  }
  for (const { binding, service, entrypoint } of wrangler.services ?? []) {
    env[binding] = {
      type: "worker",
      worker: service,
      ...(entrypoint && { exportName: entrypoint }),
    };
  }
  return {
    config: {
      name,
      compatibilityDate: compatibilityDate ?? wrangler.compatibility_date,
      compatibilityFlags: wrangler.compatibility_flags ?? [],
      env,
      exports,
      manifest: {
        mainModule: "main.mjs",
        modules: {
          "main.mjs": { type: "esm", contents: await bundle(join(path, "worker.ts")) },
        },
      },
    },
  };
}

/**
 * Bundles an example unchanged. The example imports "edge-weir" like a project that has installed the
 * package.
 */
async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
  });
  return outputFiles.map(({ text }) => text).join("");
}

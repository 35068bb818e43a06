import { mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Failure, fileFailure } from "./failure.ts";
import type { NewTemplate, StoreName, Texts } from "./fields.ts";
import type { PackageManager } from "./package-manager.ts";
import { HONO, type Toolchain } from "./versions.ts";

/** The settings of a new project, all valid. */
export interface ProjectOptions {
  readonly template: NewTemplate;
  readonly texts: Texts;
  readonly store: StoreName;
  readonly edgeWeir: string;
  readonly toolchain: Toolchain;
  readonly packageManager: PackageManager;
}

/**
 * Packages of wrangler whose scripts only repair incomplete installations. The project forbids these scripts, so that
 * npm and pnpm do not ask about them.
 */
const INSTALL_SCRIPTS = { esbuild: false, fsevents: false, sharp: false, workerd: false };

/** Returns the path and the content of each file that lists the packages to install. */
function projectManifest(options: ProjectOptions): Record<string, string> {
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

/** The folders of `templates/` that each template copies. A file of a later folder replaces one of an earlier folder. */
const FOLDERS: Readonly<Record<NewTemplate, readonly string[]>> = {
  route: ["common", "url-origin", "route"],
  "custom-domain": ["common", "url-origin", "custom-domain"],
  service: ["common", "service"],
};

const TEMPLATES = join(import.meta.dirname, "../templates");

/**
 * Files whose names begin with a dot in the project. npm leaves .gitignore out of packages, and git
 * ignores .dev.vars.example in this repository.
 */
const HIDDEN = ["gitignore", "dev.vars.example"];

/** Files that may be in the folder already, because editors and git create them. */
const HARMLESS = [".git", ".DS_Store", ".idea", ".vscode"];

/**
 * Returns the names in a folder, without the {@link HARMLESS} ones.
 *
 * @returns an empty list if the folder does not exist
 * @throws {Failure} if the path is a file, or if the folder cannot be read
 */
export async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error) => {
    if (error.code === "ENOENT") return [];
    if (error.code === "ENOTDIR")
      throw new Failure(`${folder} is a file, or is in a file. Name a folder.`);
    throw fileFailure(error, "Nothing was written.");
  });
  return names.filter((name) => !HARMLESS.includes(name));
}

/**
 * Fails if the folder contains files.
 *
 * @throws {Failure} with the names of the files
 */
export async function demandEmpty(folder: string): Promise<void> {
  const found = await namesIn(folder);
  if (found.length === 0) return;
  const shown = found.slice(0, 5).join(", ");
  const more = found.length > 5 ? ` and ${found.length - 5} more` : "";
  throw new Failure(
    `The folder ${folder} is not empty: it contains ${shown}${more}. Name a new folder, or remove these files. Nothing was written.`,
  );
}

/** Returns the files of a project: each path, with `/`, and its content. */
export async function projectFiles(options: ProjectOptions): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const folder of FOLDERS[options.template]) {
    const root = join(TEMPLATES, folder);
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const relative = path.slice(root.length + 1).replaceAll("\\", "/");
      const target = HIDDEN.includes(relative) ? `.${relative}` : relative;
      files.set(target, adapt(target, await readFile(path, "utf8"), options));
    }
  }
  for (const [path, text] of Object.entries(projectManifest(options))) files.set(path, text);
  return files;
}

/**
 * Replaces the example values of a template by the project's values. The templates contain valid
 * example values, so that tools can check the templates themselves.
 */
function adapt(path: string, text: string, { texts, toolchain, store }: ProjectOptions): string {
  const staging = texts.host === texts.zone ? `staging.${texts.host}` : `staging-${texts.host}`;
  const values: Readonly<Record<string, string>> = {
    "@cloudflare/vitest-plugin": toolchain.testPlugin,
    "2026-11-01": toolchain.compatibilityDate,
    ...(/\.(toml|md)$/.test(path) && {
      "weir-starter": texts.name,
      "staging-api.example.com": staging,
      "api.example.com": texts.host,
      '"example.com"': `"${texts.zone}"`,
      "https://origin.example.com": new URL(texts.origin).href.replace(/\/$/, ""),
      "my-api": texts.service,
    }),
  };
  // All values are replaced in one pass, so that no text inside an inserted value is replaced.
  const names = Object.keys(values).sort((one, other) => other.length - one.length);
  const pattern = new RegExp(names.map((name) => name.replace(/[.]/g, "\\.")).join("|"), "g");
  const adapted = text.replace(pattern, (name) => values[name] as string);
  if (path !== "wrangler.toml") return adapted;
  const toml = toolchain.hasExports ? adapted : withMigration(adapted);
  return store === "upstash" ? withRequiredSecrets(toml) : toml;
}

/** Declares the classes for a wrangler that ignores `exports`. Their objects would have no SQLite otherwise. */
function withMigration(toml: string): string {
  const migration =
    '[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["CounterObject", "ControlObject"]';
  return toml.replace(/^\[exports\](?:\n\w+ = .+)+/m, migration);
}

/** Uncomments the lines that make a deploy fail if a secret is missing. */
function withRequiredSecrets(toml: string): string {
  return toml.replace(/^# (?=\[env\.\w+\.secrets\]|required = )/gm, "");
}

/**
 * Writes files into a folder. After an error, removes all files that this call has created, even an incomplete one.
 * Never replaces a file.
 *
 * @throws {Failure} for an error of the file system
 */
export async function writeFiles(folder: string, files: ReadonlyMap<string, string>) {
  /** The new files, and the topmost new folders. */
  const created: string[] = [];
  try {
    for (const [path, text] of files) {
      const target = join(folder, path);
      created.push((await mkdir(dirname(target), { recursive: true })) ?? "");
      const file = await open(target, "wx");
      created.push(target);
      await file.writeFile(text).finally(() => file.close());
    }
  } catch (error) {
    for (const path of created.filter((each) => each !== "")) {
      await rm(path, { recursive: true, force: true });
    }
    throw fileFailure(error, "Nothing was written.");
  }
}

/** Returns the rules that a new project and a Hono app begin with. */
export function templateConfig(): Promise<string> {
  return readFile(join(TEMPLATES, "common/weir.config.ts"), "utf8");
}

import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { packageManifest } from "../../../scripts/package-manifest.ts";

export const ROOT = join(import.meta.dirname, "../../..");
const MODULES = join(ROOT, "node_modules");

/** The end of a program. */
export interface Ended {
  readonly code: number;
  /** Standard output and standard error, in this order. */
  readonly output: string;
}

/** Creates an empty folder. `await using` removes it. */
export async function emptyFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "weir-create-"));
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/**
 * Links the repository's packages into a project, and the repository itself as `edge-weir`. So a
 * test needs no network.
 */
export async function linkPackages(project: string): Promise<void> {
  const modules = join(project, "node_modules");
  await mkdir(join(modules, ".bin"), { recursive: true });
  const names = (await readdir(MODULES)).filter((name) => !name.startsWith("."));
  for (const name of names) await symlink(join(MODULES, name), join(modules, name));
  await symlink(ROOT, join(modules, "edge-weir"));
  for (const name of await readdir(join(MODULES, ".bin"))) {
    await symlink(join(MODULES, ".bin", name), join(modules, ".bin", name));
  }
  const weir = join(modules, ".bin/weir");
  await writeFile(weir, `#!/bin/sh\nexec node ${join(ROOT, "cli/weir.ts")} "$@"\n`);
  await chmod(weir, 0o755);
}

/**
 * Builds the code of the package `edge-weir`: JavaScript and types, without the documentation. Projects
 * of users have other settings of the compiler than the repository, so they cannot compile its sources.
 *
 * @param target an empty folder
 */
export async function buildPackage(target: string): Promise<void> {
  const args = ["-p", join(ROOT, "scripts/tsconfig.package.json"), "--outDir", target];
  await promisify(execFile)(join(MODULES, ".bin/tsc"), args);
  const manifest = packageManifest(JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
  await writeFile(join(target, "package.json"), JSON.stringify(manifest));
}

/** Runs a command of a project, without a terminal and without network. */
export function runIn(project: string, command: string, args: readonly string[]): Promise<Ended> {
  const PATH = [join(project, "node_modules/.bin"), process.env.PATH].join(delimiter);
  // The variables of the surrounding test run would change vitest in the project.
  const { VITEST: _vitest, NODE_ENV: _nodeEnv, ...inherited } = process.env;
  const wrangler = {
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_LOG_PATH: join(project, ".wrangler"),
  };
  const env = { ...inherited, ...wrangler, CI: "true", PATH };
  return new Promise((resolve) => {
    const child = execFile(command, args, { cwd: project, env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? 1) : 0, output: stdout + stderr });
    });
    child.stdin?.end();
  });
}

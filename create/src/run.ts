import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { NewTemplate } from "./fields.ts";
import { type Flags, readFlags } from "./flags.ts";
import { addToHonoApp } from "./hono/add-to-app.ts";
import { beforeDeploy, nextSteps } from "./messages.ts";
import { projectFiles, writeFiles } from "./new-project.ts";
import {
  hasPackage,
  type Installation,
  installPackages,
  type PackageManager,
  runningPackageManager,
} from "./package-manager.ts";
import { packageSpec } from "./package-spec.ts";
import { defaultPrompts, type Prompts, terminalPrompts } from "./prompts.ts";
import { chooseFolder, chooseTemplate, chooseTexts, demandUsedFlags } from "./settings.ts";
import { toolchainFor } from "./versions.ts";

/** The settings of a run that both kinds of projects use. */
interface Run {
  readonly flags: Flags;
  readonly folder: string;
  readonly prompts: Prompts;
  readonly edgeWeir: string;
  readonly packageManager: PackageManager;
}

/**
 * Runs the starter: reads the command line, shows prompts for all missing values, and writes the
 * project. If the terminal cannot show prompts, all defaults apply.
 *
 * @param args the arguments without node and the script
 * @returns the exit code
 * @throws {Failure} for settings that cannot work; then nothing was written
 * @throws {CommanderError} for a faulty command line, after the error has been printed
 */
export async function run(args: readonly string[]): Promise<number> {
  const version = await ownVersion();
  const flags = readFlags(args, version);
  const edgeWeir = packageSpec(flags.edgeWeir, version);
  const packageManager =
    flags.packageManager ?? runningPackageManager(process.env.npm_config_user_agent);
  const isInteractive = !flags.yes && process.stdin.isTTY && process.stdout.isTTY;
  const prompts = isInteractive ? terminalPrompts : defaultPrompts;
  const folder = await chooseFolder(flags, prompts);
  const template = await chooseTemplate(flags, folder, prompts);
  demandUsedFlags(template, flags);
  const common: Run = { flags, folder, prompts, edgeWeir, packageManager };
  return template === "hono" ? addToApp(common) : createProject(template, common);
}

async function createProject(template: NewTemplate, common: Run): Promise<number> {
  const { flags, folder, prompts, edgeWeir, packageManager } = common;
  const texts = await chooseTexts(template, flags, folder, prompts);
  const store = flags.store ?? (await prompts.store());
  const toolchain = toolchainFor(process.versions.node);
  const files = await projectFiles({ template, texts, store, edgeWeir, toolchain, packageManager });
  await writeFiles(folder, files);
  console.log(`Wrote ${files.size} files to ${relative(process.cwd(), folder) || "this folder"}.`);
  const installation = await install(common);
  if (installation === "interrupted") return EXIT_INTERRUPTED;
  const isInstalled = installation === "installed";
  const url = "http://localhost:8787";
  console.log(nextSteps({ folder, packageManager, isInstalled, url, isOwnApp: false }));
  console.log(beforeDeploy(template, texts, packageManager));
  return flags.install && !isInstalled ? 1 : 0;
}

async function addToApp(common: Run): Promise<number> {
  const { flags, folder, edgeWeir, packageManager } = common;
  const nodeVersion = process.versions.node;
  const { report, hasChanged, needsHand, devUrl } = await addToHonoApp(folder, {
    edgeWeir,
    nodeVersion,
  });
  console.log(report);
  // An earlier run may have changed the files, without an installation.
  if (!hasChanged && hasPackage(folder)) return needsHand ? 1 : 0;
  if (!hasChanged) console.log(`The package edge-weir is not installed in ${folder}.`);
  const installation = await install(common);
  if (installation === "interrupted") return EXIT_INTERRUPTED;
  const isInstalled = installation === "installed";
  const steps = { folder, packageManager, isInstalled, url: devUrl, isOwnApp: true };
  if (!needsHand) console.log(nextSteps(steps));
  return needsHand || (flags.install && !isInstalled) ? 1 : 0;
}

/** The exit code of a process that Ctrl-C ends: 128 plus the number of the signal. */
const EXIT_INTERRUPTED = 130;

/** Installs the packages, unless `--no-install` is set. */
async function install(run: Run): Promise<Installation | "skipped"> {
  const { flags, folder, packageManager } = run;
  if (!flags.install) return "skipped";
  console.log(`Running ${packageManager} install …`);
  const installation = await installPackages(packageManager, folder);
  if (installation === "failed") {
    console.error(
      `${packageManager} install failed. The files are complete: correct the cause, and run it again.`,
    );
  }
  if (installation === "interrupted") {
    console.error(
      `\n${packageManager} install was interrupted. The files are complete: run ${packageManager} install in ${folder} to go on.`,
    );
  }
  return installation;
}

/** Returns the version of this package. In the repository, its folder has the same shape. */
async function ownVersion(): Promise<string> {
  const path = join(import.meta.dirname, "../package.json");
  return JSON.parse(await readFile(path, "utf8")).version;
}

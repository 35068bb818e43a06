import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { cancel, isCancel, select, text } from "@clack/prompts";
import { Command, Option } from "commander";
import { type EdgeWeir, readEdgeWeir } from "./edge-weir.ts";
import { Failure } from "./failure.ts";
import {
  FIELDS,
  type Field,
  type NewTemplate,
  STORES,
  type StoreName,
  TEMPLATES,
  type Template,
  type Texts,
} from "./fields.ts";
import { addToHonoApp } from "./hono/add-to-app.ts";
import { isHonoApp, readHonoApp } from "./hono/app-files.ts";
import { demandEmpty, namesIn, projectFiles, writeFiles } from "./new-project.ts";
import {
  hasPackage,
  installPackages,
  PACKAGE_MANAGERS,
  type PackageManager,
  runningPackageManager,
} from "./package-manager.ts";
import { toolchainFor } from "./versions.ts";

/** Asks the user, or takes the defaults if the terminal cannot show prompts. A cancelled prompt throws a {@link Failure}. */
export interface Prompts {
  text(
    question: string,
    initial: string,
    fault: (text: string) => string | undefined,
  ): Promise<string>;
  choice<Value extends string>(
    question: string,
    options: readonly Choice<Value>[],
    initial: Value,
  ): Promise<Value>;
}

interface Choice<Value> {
  readonly value: Value;
  readonly label: string;
  readonly hint: string;
}

const TEMPLATE_CHOICES: readonly Choice<Template>[] = [
  { value: "route", label: "In front of a zone's own origin", hint: "a route" },
  { value: "custom-domain", label: "On a host name of its own", hint: "in front of a URL" },
  { value: "service", label: "In front of another Worker of yours", hint: "a service binding" },
  { value: "hono", label: "Inside an existing Hono app", hint: "run this in the app's folder" },
];

const STORE_CHOICES: readonly Choice<StoreName>[] = [
  { value: "durable-object", label: "Durable Objects", hint: "no secrets, no other account" },
  { value: "upstash", label: "Upstash Redis", hint: "one database; two secrets" },
];

const terminalPrompts: Prompts = {
  async text(message, initial, fault) {
    const validate = (answer: string | undefined) => fault(answer?.trim() || initial);
    const options = { message, placeholder: initial, defaultValue: initial, validate };
    return answered(await text(options)).trim() || initial;
  },
  async choice(message, options, initialValue) {
    return answered<typeof initialValue>(
      await select<string>({ message, options: [...options], initialValue }),
    );
  },
};

const defaultPrompts: Prompts = {
  text: async (_, initial) => initial,
  choice: async (_, __, initial) => initial,
};

function answered<Value extends string>(answer: string | symbol): Value {
  if (!isCancel(answer)) return answer as Value;
  cancel("Cancelled.");
  throw new Failure("Nothing was written.");
}

/** The flags and the argument of the command line. */
export interface Flags extends Partial<Texts> {
  /** The folder; undefined if it is not given. */
  readonly dir?: string;
  readonly template?: Template;
  readonly store?: StoreName;
  readonly packageManager?: PackageManager;
  /** Where the package edge-weir comes from: a version, a tag, a file or a git URL. */
  readonly edgeWeir?: string;
  /** False with `--no-install`. */
  readonly install: boolean;
  /** Whether defaults replace the prompts. */
  readonly yes?: true;
}

const EXAMPLES = `
Examples:
  npm create edge-weir@latest
  npm create edge-weir@latest my-limits -- --template route --host api.example.com --zone example.com
  npm create edge-weir@latest my-limits -- --template custom-domain --host api.example.com --origin https://origin.example.com
  npm create edge-weir@latest my-limits -- --template service --host api.example.com --service my-api
  npm create edge-weir@latest . -- --template hono       in the folder of a Hono app`;

/**
 * Reads the command line.
 *
 * @param args the arguments without node and the script
 * @throws {CommanderError} for unknown flags and values, after the error has been printed, and
 * after `--help` and `--version`
 */
function readFlags(args: readonly string[], version: string): Flags {
  const command = new Command("create-edge-weir")
    .description("Creates a project with Weir, or adds Weir to a Hono app on Cloudflare Workers.")
    .argument("[dir]", "the folder of the project (default: the current folder, if it is empty)")
    .option("-y, --yes", "take the default for everything that no flag sets")
    .addOption(
      new Option("-t, --template <template>", "how requests reach Weir").choices(TEMPLATES),
    );
  for (const { key, placeholder, description } of FIELDS) {
    command.option(`--${key} <${placeholder}>`, description);
  }
  command
    .addOption(
      new Option("--store <store>", "where Weir counts (default: durable-object)").choices(STORES),
    )
    .addOption(
      new Option("--package-manager <name>", "default: the one that runs this command").choices(
        PACKAGE_MANAGERS,
      ),
    )
    .option("--edge-weir <spec>", "a version, a .tgz file to copy, or a git URL of edge-weir")
    .option("--no-install", "do not install the packages")
    .version(version)
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("(--help shows what is allowed)")
    .exitOverride()
    .parse(args, { from: "user" });
  const [dir] = command.args;
  return { ...command.opts<Flags>(), ...(dir !== undefined && { dir }) };
}

/** The folder for a new project if the current folder is not empty. */
const NEW_FOLDER = "my-weir";

/**
 * Returns the path of the project's folder.
 *
 * @throws {Failure} if nobody can answer prompts, and the current folder has an app that this
 * starter does not know. The user probably does not want a new project inside this app
 */
async function chooseFolder(flags: Flags, prompts: Prompts): Promise<string> {
  if (flags.dir !== undefined) return resolve(flags.dir);
  if (flags.template === "hono" || (flags.template === undefined && (await isHonoApp(".")))) {
    return resolve(".");
  }
  if (prompts === defaultPrompts && flags.template === undefined && existsSync("package.json")) {
    const reason = await readHonoApp(".").then(
      () => "It is a project with Weir.",
      (error: Error) => error.message,
    );
    throw new Failure(
      `The current folder has a package.json, but it is not a Hono app to which the starter can add Weir. ${reason}
To create a new project, name its folder: npm create edge-weir@latest ${NEW_FOLDER}`,
    );
  }
  const initial = (await namesIn(".")).length === 0 ? "." : NEW_FOLDER;
  return resolve(await prompts.text("In which folder?", initial, () => undefined));
}

/** @throws {Failure} if the folder cannot take a project of this template */
async function chooseTemplate(flags: Flags, folder: string, prompts: Prompts): Promise<Template> {
  const isApp = await isHonoApp(folder);
  const template =
    flags.template ??
    (await prompts.choice("Where should Weir run?", TEMPLATE_CHOICES, isApp ? "hono" : "route"));
  if (template !== "hono") await demandEmpty(folder);
  return template;
}

/**
 * Fails if a flag has no effect with a template.
 *
 * @throws {Failure} with the flag and the templates that use it
 */
function demandUsedFlags(template: Template, flags: Flags): void {
  const unused = FIELDS.filter(
    ({ key, templates }) =>
      flags[key] !== undefined && !(templates as readonly Template[]).includes(template),
  );
  const faults = unused.map(
    ({ key, templates }) =>
      `--${key} has no effect with --template ${template}. It belongs to ${templates.join(", ")}.`,
  );
  if (template === "hono" && flags.store !== undefined) {
    faults.push(
      "--store has no effect with --template hono: the app counts in Upstash as soon as the secret UPSTASH_REDIS_REST_URL is set.",
    );
  }
  if (faults.length > 0) throw new Failure(faults.join("\n"));
}

/**
 * Returns the texts of a template, from flags and from answers to prompts. Texts that the template does not use have
 * their defaults.
 *
 * @throws {Failure} with all faults of the flags
 */
export async function chooseTexts(
  template: NewTemplate,
  flags: Flags,
  folder: string,
  prompts: Prompts,
): Promise<Texts> {
  demandValid(FIELDS, flags);
  const texts: { -readonly [Key in keyof Texts]?: string } = {};
  for (const field of FIELDS) {
    const initial = field.initial(texts, folder);
    const isAsked = flags[field.key] === undefined && field.templates.includes(template);
    texts[field.key] = isAsked
      ? await prompts.text(`What is ${field.description}?`, initial, (text) =>
          field.fault(text, texts),
        )
      : (flags[field.key] ?? initial);
  }
  // A flag may contradict a default, or an answer.
  const used = FIELDS.filter(({ templates }) => templates.includes(template));
  demandValid(used, texts);
  return texts as Texts;
}

/** @throws {Failure} with all faults */
function demandValid(fields: readonly Field[], texts: Partial<Texts>): void {
  const faults = fields.flatMap(({ key, fault }) => {
    const text = texts[key];
    const found = text === undefined ? undefined : fault(text, texts);
    return found === undefined ? [] : [`--${key} ${JSON.stringify(text)}: ${found}`];
  });
  if (faults.length > 0) throw new Failure(`${faults.join("\n")}\nNothing was written.`);
}

/** Returns the commands that start Weir, and that show its limit. */
function nextSteps(options: {
  readonly folder: string;
  readonly packageManager: PackageManager;
  readonly isInstalled: boolean;
  /** The URL of an app in development. In a new project, `dev` prints the URL, and what to try. */
  readonly appUrl?: string;
}): string {
  const { folder, packageManager, isInstalled, appUrl } = options;
  const path = relative(process.cwd(), folder);
  const enter = path === "" ? [] : [`cd ${/\s/.test(path) ? JSON.stringify(path) : path}`];
  const start = `${packageManager} run dev`;
  const commands = [...enter, ...(isInstalled ? [] : [`${packageManager} install`]), start];
  const next =
    appUrl === undefined
      ? "It prints six logins to send, and the address of the dashboard with its token."
      : `Then send six logins to the address that it prints, such as ${appUrl}. The sixth gets 429, the others 404 if the app has no /login:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${appUrl}/login; done`;
  return `
Start Weir. This needs no account:

  ${commands.join("\n  ")}

${next}
`;
}

/** Returns the values to check before the first deploy. */
function beforeDeploy(template: NewTemplate, texts: Texts, packageManager: PackageManager): string {
  const { host, zone, origin, service } = texts;
  const target = {
    route: `in the zone ${zone}, in front of the zone's own origin`,
    "custom-domain": `in front of ${origin}`,
    service: `in front of the Worker ${service}`,
  }[template];
  return `\`${packageManager} run deploy\` puts Weir on ${host}, ${target}. To change this, edit wrangler.toml.`;
}

/** The settings of a run that both kinds of projects use. */
interface Run {
  readonly flags: Flags;
  readonly folder: string;
  readonly prompts: Prompts;
  readonly edgeWeir: EdgeWeir;
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
  const edgeWeir = await readEdgeWeir(flags.edgeWeir, version);
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
  const store =
    flags.store ?? (await prompts.choice("Where should Weir count?", STORE_CHOICES, STORES[0]));
  const toolchain = toolchainFor(process.versions.node);
  const files = await projectFiles({ template, texts, store, edgeWeir, toolchain, packageManager });
  await writeFiles(folder, files);
  console.log(`Wrote ${files.size} files to ${relative(process.cwd(), folder) || "this folder"}.`);
  const isInstalled = await install(common);
  console.log(nextSteps({ folder, packageManager, isInstalled }));
  console.log(beforeDeploy(template, texts, packageManager));
  return flags.install && !isInstalled ? 1 : 0;
}

async function addToApp(common: Run): Promise<number> {
  const { flags, folder, edgeWeir, packageManager } = common;
  const { report, hasChanged, needsHand, devUrl } = await addToHonoApp(folder, edgeWeir);
  console.log(report);
  // An earlier run may have changed the files, without an installation.
  if (!hasChanged && hasPackage(folder)) return needsHand ? 1 : 0;
  if (!hasChanged) console.log(`The package edge-weir is not installed in ${folder}.`);
  const isInstalled = await install(common);
  if (!needsHand) console.log(nextSteps({ folder, packageManager, isInstalled, appUrl: devUrl }));
  return needsHand || (flags.install && !isInstalled) ? 1 : 0;
}

/** Installs the packages, unless `--no-install` is set. @returns whether they are installed now */
async function install({ flags, folder, packageManager }: Run): Promise<boolean> {
  if (!flags.install) return false;
  console.log(`Running ${packageManager} install …`);
  const isInstalled = await installPackages(packageManager, folder);
  if (!isInstalled) {
    console.error(
      `\n${packageManager} install failed, or was interrupted. The files are complete: run ${packageManager} install in ${folder} to go on. If it does not find edge-weir, no version is published yet: start again in a new folder with --edge-weir FILE.tgz, as the README of Weir shows.`,
    );
  }
  return isInstalled;
}

/** Returns the version of this package, also in the repository, whose folders have the same names. */
async function ownVersion(): Promise<string> {
  const path = join(import.meta.dirname, "../package.json");
  return JSON.parse(await readFile(path, "utf8")).version;
}

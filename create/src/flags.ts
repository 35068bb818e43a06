import { Command, Option } from "commander";
import { FIELDS, STORES, type StoreName, TEMPLATES, type Template, type Texts } from "./fields.ts";
import { PACKAGE_MANAGERS, type PackageManager } from "./package-manager.ts";

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
  npm create edge-weir@latest my-limits -- --yes
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
export function readFlags(args: readonly string[], version: string): Flags {
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
    .option("--edge-weir <spec>", "a version, a .tgz file or a git URL of the package edge-weir")
    .option("--no-install", "do not install the packages")
    .version(version)
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("(--help shows what is allowed)")
    .exitOverride()
    .parse(args, { from: "user" });
  const [dir] = command.args;
  return { ...command.opts<Flags>(), ...(dir !== undefined && { dir }) };
}

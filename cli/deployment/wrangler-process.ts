import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

/** The options of the wrangler process that started this process as its build. */
export interface WranglerOptions {
  /** The value of `--env`; `""` if the option is not given. */
  readonly environment: string;
  /** The value of `--config`; undefined if the option is missing or repeated. */
  readonly config: string | undefined;
}

interface Process {
  readonly parent: number;
  readonly argv: readonly string[];
}

/**
 * The maximum number of parent processes to examine: shells, npm and npx may be between wrangler and
 * the command.
 */
const MAX_ANCESTORS = 10;

/**
 * Returns the options of the wrangler process that started this process. Wrangler passes only its
 * command to its build (WRANGLER_COMMAND), not the environment that it deploys. So this function
 * looks for wrangler among the parent processes.
 *
 * @param pid the process to begin with
 * @returns undefined if wrangler is not found, for example on Windows
 */
export function wranglerOptions(pid: number = process.ppid): WranglerOptions | undefined {
  let next = pid;
  for (let level = 0; level < MAX_ANCESTORS && next > 1; level++) {
    const found = readProcess(next);
    if (!found) return undefined;
    const { parent, argv } = found;
    const script = argv.findIndex((text) => /(^|[\\/])wrangler(-dist[\\/]cli)?(\.js)?$/.test(text));
    if (script !== -1) return optionsIn(argv.slice(script + 1));
    next = parent;
  }
  return undefined;
}

function optionsIn(args: readonly string[]): WranglerOptions {
  const { values } = parseArgs({
    args: [...args],
    // Wrangler has many options besides these two.
    strict: false,
    options: {
      env: { type: "string", short: "e" },
      config: { type: "string", short: "c", multiple: true },
    },
  });
  const [config, ...others] = values.config ?? [];
  return {
    environment: typeof values.env === "string" ? values.env.replace(/^=/, "") : "",
    config:
      typeof config === "string" && others.length === 0 ? config.replace(/^=/, "") : undefined,
  };
}

/** Reads the command line of a process, from /proc on Linux and with `ps` on macOS. */
function readProcess(pid: number): Process | undefined {
  try {
    if (process.platform === "linux") {
      // The second field is the name of the program, which may contain blanks and brackets.
      const [, fields = ""] = /\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      return { parent: Number(fields.split(" ")[1]), argv };
    }
    if (process.platform === "win32") return undefined;
    const line = execFileSync("ps", ["-o", "ppid=,command=", "-p", String(pid)], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [parent, ...argv] = line.trim().split(/\s+/);
    return { parent: Number(parent), argv };
  } catch {
    return undefined;
  }
}

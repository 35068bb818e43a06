import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import getPort from "get-port";
import { type OwnedChild, startChild } from "../../../dev/child.ts";

const ROOT = join(import.meta.dirname, "../../..");
const MODULES = join(ROOT, "node_modules");

/** A copy of this project in a temporary folder, in which `wrangler dev` runs. */
export interface WranglerProject extends AsyncDisposable {
  readonly path: string;
  /** The URL of the first Worker. */
  readonly url: string;
  /** Everything that wrangler has printed so far. */
  output(): string;
  /** Returns the path of a file of the project. */
  file(name: string): string;
}

/**
 * Copies the files of this project that its Worker consists of, adds files, and starts
 * `wrangler dev` with the project's own wrangler.toml, or with several configurations.
 *
 * @param files the added or replaced files, by name
 * @param configs the names of wrangler's configurations; the first Worker gets the requests
 */
export async function startWranglerProject(
  files: Readonly<Record<string, string>>,
  configs: readonly string[] = ["wrangler.toml"],
): Promise<WranglerProject> {
  const path = await mkdtemp(join(tmpdir(), "weir-dev-"));
  const file = (name: string) => join(path, name);
  for (const name of ["src", "cli", "package.json", "wrangler.toml"]) {
    await cp(join(ROOT, name), file(name), { recursive: true });
  }
  await symlink(MODULES, file("node_modules"));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(file(name)), { recursive: true });
    await writeFile(file(name), content);
  }
  let output = "";
  const child = await startWrangler(path, configs, (text) => {
    output += text;
  });
  const stop = async () => {
    await child.stop();
    await rm(path, { recursive: true, force: true });
  };
  return { path, url: child.url, output: () => output, file, [Symbol.asyncDispose]: stop };
}

/** Appends text to the project's wrangler.toml, for example a binding. */
export async function withBinding(toml: string): Promise<string> {
  return `${await readFile(join(ROOT, "wrangler.toml"), "utf8")}\n${toml}`;
}

async function startWrangler(
  cwd: string,
  configs: readonly string[],
  onOutput: (text: string) => void,
): Promise<OwnedChild & { readonly url: string }> {
  const [port, inspectorPort] = [await getPort(), await getPort()];
  // The command of [build] begins with `node`. It must find the project's own Node, as in npx.
  const { NODE_ENV, ...environment } = process.env;
  const env = {
    ...environment,
    PATH: `${join(MODULES, ".bin")}${delimiter}${process.env.PATH}`,
    WRANGLER_SEND_METRICS: "false",
    NO_COLOR: "1",
  };
  const child = await startChild(
    process.execPath,
    [
      join(MODULES, "wrangler/bin/wrangler.js"),
      "dev",
      ...configs.flatMap((config) => ["-c", config]),
      ...["--ip", "127.0.0.1", "--port", `${port}`, "--inspector-port", `${inspectorPort}`],
      "--show-interactive-dev-session=false",
    ],
    { cwd, env, stdio: ["ignore", "pipe", "pipe"] },
  );
  for (const stream of [child.process.stdout, child.process.stderr]) {
    stream?.setEncoding("utf8").on("data", onOutput);
  }
  return { ...child, url: `http://127.0.0.1:${port}` };
}

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const COMMAND = fileURLToPath(new URL("../../../cli/weir.ts", import.meta.url));

/** The URL of edge-weir/config. A module in a temporary folder cannot import it by name. */
export const WEIR_CONFIG = new URL("../../../src/config/index.ts", import.meta.url).href;

/** The output and the exit code of a command. */
export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the command in a new process, as `npm run weir --` does.
 *
 * @param env more environment variables; undefined removes a variable
 */
export function runWeir(
  args: readonly string[],
  cwd: string = dirname(dirname(COMMAND)),
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<Run> {
  const { promise, resolve } = Promise.withResolvers<Run>();
  execFile(
    process.execPath,
    [COMMAND, ...args],
    { cwd, env: { ...process.env, ...env }, maxBuffer: Infinity },
    (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    },
  );
  return promise;
}

/** Creates a folder for the files of one test. `await using` deletes it at the end. */
export async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), "weir-"));
  return {
    path,
    write: (name: string, content: string) => writeFile(join(path, name), content),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

/** Runs `check` in a folder with one file. `content` is written as JSON unless it is a text. */
export async function check(file: string, content: unknown, ...args: string[]): Promise<Run> {
  await using folder = await temporaryFolder();
  await folder.write(file, typeof content === "string" ? content : JSON.stringify(content));
  // The `await` is needed, because the folder is deleted when this function returns.
  return await runWeir(["check", "--config", file, ...args], folder.path);
}

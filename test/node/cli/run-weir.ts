import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const COMMAND = fileURLToPath(new URL("../../../cli/weir.ts", import.meta.url));

/** What a module in a temporary folder imports: by name, it would not find "weir/config". */
export const WEIR_CONFIG = new URL("../../../src/config/index.ts", import.meta.url).href;

/** What a command printed, and the code that it ended with. */
export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command as a process of its own, as `npm run weir --` does. */
export function runWeir(
  args: readonly string[],
  cwd: string = dirname(dirname(COMMAND)),
): Promise<Run> {
  const { promise, resolve } = Promise.withResolvers<Run>();
  execFile(
    process.execPath,
    [COMMAND, ...args],
    { cwd, maxBuffer: Infinity },
    (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    },
  );
  return promise;
}

/** A folder for one test's files, gone when it is disposed of. */
export async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), "weir-"));
  return {
    path,
    write: (name: string, content: string) => writeFile(join(path, name), content),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

/** Runs `check` in a folder with one file in it; what is no text already is written as JSON. */
export async function check(file: string, content: unknown, ...args: string[]): Promise<Run> {
  await using folder = await temporaryFolder();
  await folder.write(file, typeof content === "string" ? content : JSON.stringify(content));
  // Awaited here: the folder is gone once this returns.
  return await runWeir(["check", "--config", file, ...args], folder.path);
}

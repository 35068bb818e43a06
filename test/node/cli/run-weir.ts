import { execFile } from "node:child_process";
import { Console } from "node:console";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Writable } from "node:stream";
import { fileURLToPath, URL } from "node:url";

const COMMAND = fileURLToPath(new URL("../../../cli/weir.ts", import.meta.url));

/** As a text, because the types of this file would clash with those of Workers, which the command uses. */
const COMMAND_LINE: string = new URL("../../../cli/command-line.ts", import.meta.url).href;

export const REPOSITORY = dirname(dirname(COMMAND));

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
 * @param input the standard input
 */
export function runWeir(
  args: readonly string[],
  cwd: string = REPOSITORY,
  env: Readonly<Record<string, string | undefined>> = {},
  input = "",
): Promise<Run> {
  const { promise, resolve } = Promise.withResolvers<Run>();
  const child = execFile(
    process.execPath,
    [COMMAND, ...args],
    { cwd, env: { ...process.env, ...env }, maxBuffer: Infinity },
    (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    },
  );
  // A command that fails early does not read its input.
  child.stdin?.on("error", () => {}).end(input);
  return promise;
}

interface CommandLine {
  runCommandLine(args: readonly string[]): Promise<void>;
}

let previous: Promise<unknown> = Promise.resolve();

/**
 * Runs the command in this process, which takes a tenth of the time of a new process. Only {@link runWeir} can test how
 * a process ends. The runs come one after the other, because they share the current folder, the environment variables
 * and the output.
 *
 * @param env more environment variables; undefined removes a variable
 */
export function callWeir(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<Run> {
  const run = previous.then(() => callAlone(args, cwd, env));
  previous = run.catch(() => {});
  return run;
}

async function callAlone(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Run> {
  const { runCommandLine }: CommandLine = await import(COMMAND_LINE);
  const before = { cwd: process.cwd(), env: process.env, exitCode: process.exitCode, console };
  // Node passes an unhandled rejection to `uncaughtException` only if `unhandledRejection` has no listener.
  const onRejection = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  using stdout = captured(process.stdout);
  using stderr = captured(process.stderr);
  process.chdir(cwd);
  process.env = { ...before.env };
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  process.exitCode = undefined;
  globalThis.console = new Console(stdout.stream, stderr.stream);
  try {
    await withoutCallers(() => runCommandLine(args));
    return { code: Number(process.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    process.chdir(before.cwd);
    process.env = before.env;
    process.exitCode = before.exitCode;
    globalThis.console = before.console;
    for (const listener of onRejection) process.on("unhandledRejection", listener);
  }
}

/** Awaits a function, and keeps this file out of the stacks of its errors, as for users. */
function withoutCallers(run: () => Promise<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // V8 follows `await` and `resolve` to the callers, but not these functions.
  setImmediate(() =>
    run().then(
      () => resolve(),
      (error) => reject(error),
    ),
  );
  return promise;
}

/** Collects what is written to a stream of this process. `using` ends this. */
function captured(target: NodeJS.WriteStream) {
  const { write } = target;
  let text = "";
  target.write = ((chunk: string | Uint8Array) => {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk);
    return true;
  }) as typeof write;
  // The command replaces `write` too, so each call reads the current `write`.
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      target.write(chunk);
      done();
    },
  });
  return {
    stream,
    text: () => text,
    [Symbol.dispose]() {
      target.write = write;
    },
  };
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

/**
 * Runs `check` in a folder with one file, in this process. `content` is written as JSON unless it is a
 * text.
 */
export function check(file: string, content: unknown, ...args: string[]): Promise<Run> {
  return checkWith(callWeir, file, content, ...args);
}

/** Runs `check` like {@link check}, but in a new process. */
export function checkInNewProcess(file: string, content: unknown, ...args: string[]): Promise<Run> {
  return checkWith(runWeir, file, content, ...args);
}

async function checkWith(
  run: typeof callWeir,
  file: string,
  content: unknown,
  ...args: string[]
): Promise<Run> {
  await using folder = await temporaryFolder();
  await folder.write(file, typeof content === "string" ? content : JSON.stringify(content));
  // The `await` is needed, because the folder is deleted when this function returns.
  return await run(["check", "--config", file, ...args], folder.path);
}

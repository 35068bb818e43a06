import { writeSync } from "node:fs";
import { explainLoadError } from "./load-error.ts";
import { jsonText } from "./print/text.ts";

/** Errors of the standard output, such as a full disk. */
export interface OutputErrors {
  /** Reports the first error. Call it when everything has been written. */
  report(): void;
}

/**
 * Watches for errors of the standard output. Without a listener, they would be lost, or end the process with a stack
 * trace. The command goes on, because it may have to remove keys from a database.
 */
export function watchOutput(): OutputErrors {
  let first: NodeJS.ErrnoException | undefined;
  process.stdout.on("error", (error) => {
    first ??= error;
  });
  // An error of the standard error cannot be reported anywhere.
  process.stderr.on("error", () => {});
  return {
    report() {
      // The reader, such as `head`, has read enough.
      if (!first || first.code === "EPIPE") return;
      console.error(`The output could not be written. ${first.message}`);
      process.exitCode = 2;
    },
  };
}

/** The exit code of a command that could not be carried out. */
const EXIT_CODE = 2;

/**
 * Guards against code of a configuration that runs after its file is loaded, such as a timer. If this code throws an
 * error or calls `process.exit`, the command prints a message, or with `--json` one JSON document, and exits with 2.
 *
 * @returns a function to call when the command has ended. Later errors change nothing
 */
export function guardProcess(isJson: boolean): () => void {
  let hasEnded = false;
  const { exit } = process;
  const report = (error: string) => {
    hasEnded = true;
    if (isJson) writeSync(1, `${jsonText({ ok: false, error })}\n`);
    else writeSync(2, `${error}\n`);
    process.exitCode = EXIT_CODE;
  };
  process.on("uncaughtException", (error) => {
    if (hasEnded) return;
    report(`The command failed. ${explainLoadError(error)}`);
    exit();
  });
  process.on("exit", (code) => {
    if (!hasEnded && code === 0) {
      report("The command ended early, because code of the configuration calls process.exit.");
    }
  });
  return () => {
    hasEnded = true;
  };
}

/** The options for guarding code of a configuration. */
export interface GuardOptions {
  /** The name of the code, as the start of a sentence: `The file`. */
  readonly subject: string;
  /** The message for code that does not return in time. */
  readonly unsettled: string;
  /** The longest time to wait, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Runs a function that calls code of a configuration. This code cannot end the process or keep it waiting forever.
 * Nor can the code write to the standard output, which may be JSON for a program. But an endless loop still blocks
 * the command.
 *
 * @throws the error that the code throws, also in a timer or in a promise that nothing awaits
 */
export async function runGuarded<T>(run: () => Promise<T>, options: GuardOptions): Promise<T> {
  const { subject, unsettled, timeoutMs } = options;
  const { exit } = process;
  const { write } = process.stdout;
  process.stdout.write = process.stderr.write.bind(process.stderr);
  let reject: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_, rejectPromise) => {
    reject = rejectPromise;
  });
  process.exit = () => {
    const error = new Error(`${subject} calls process.exit. Throw an error instead.`);
    // The code may catch the error.
    reject(error);
    throw error;
  };
  const fail = () => reject(new Error(unsettled));
  const timer = setTimeout(fail, timeoutMs);
  // If nothing else is pending, Node emits `beforeExit`, and then ends without a message.
  timer.unref();
  process.once("beforeExit", fail);
  // Node also emits `uncaughtException` for unhandled rejections. The command's own listener would end the process.
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", reject);
  try {
    const result = await Promise.race([run(), failed]);
    // Node reports an unhandled rejection only at the end of the event loop's turn.
    await Promise.race([new Promise((resolve) => setImmediate(resolve)), failed]);
    return result;
  } finally {
    clearTimeout(timer);
    process.off("beforeExit", fail);
    process.off("uncaughtException", reject);
    for (const other of others) process.on("uncaughtException", other);
    process.exit = exit;
    process.stdout.write = write;
  }
}

/**
 * Runs a function without the environment variable `NODE_ENV`. Some build servers set this variable to
 * `"production"`. Weir's schema then has no texts for faults, as in a deployed Worker. The schema reads the
 * variable while it is loaded and again when it finds a fault, so both must happen within the function.
 */
export async function withoutNodeEnv<Result>(run: () => Result | Promise<Result>): Promise<Result> {
  const { NODE_ENV } = process.env;
  delete process.env.NODE_ENV;
  try {
    return await run();
  } finally {
    if (NODE_ENV !== undefined) process.env.NODE_ENV = NODE_ENV;
  }
}
